// The WebSocket to the server: it is opened again when it breaks.

import { decodeFrame, type ErrorMessage, type MovingFrame, type SceneMessage, type StatusMessage } from "./protocol";

export interface Listener {
  scene(message: SceneMessage): void;
  status(message: StatusMessage): void;
  frame(frame: MovingFrame): void;
  error(message: ErrorMessage): void;
  connected(yes: boolean): void;
}

export class Link {
  private socket: WebSocket | null = null;

  constructor(private readonly listener: Listener) {
    this.connect();
  }

  send(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private connect(): void {
    const address = new URL("socket?later", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.listener.connected(true);
    socket.onclose = () => {
      this.listener.connected(false);
      setTimeout(() => this.connect(), 1000);
    };
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      if (typeof event.data !== "string") {
        const frame = decodeFrame(event.data);
        if (frame) this.listener.frame(frame);
        return;
      }
      const message = JSON.parse(event.data) as SceneMessage | StatusMessage | ErrorMessage;
      if (message.type === "scene") this.listener.scene(message);
      else if (message.type === "status") this.listener.status(message);
      else if (message.type === "error") this.listener.error(message);
    };
    this.socket = socket;
  }
}
