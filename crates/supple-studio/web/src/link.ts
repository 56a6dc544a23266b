// The WebSocket to the server: it is opened again when it breaks.

import { reasonOf } from "./keep";
import { decodeFrame, type ErrorMessage, type MovingFrame, type SceneMessage, type StatusMessage } from "./protocol";

export interface Listener {
  scene(message: SceneMessage): void;
  status(message: StatusMessage): void;
  frame(frame: MovingFrame): void;
  error(message: ErrorMessage): void;
  connected(yes: boolean): void;
  /** The server is there and does not let this page in, for this reason; null: it does. */
  locked(why: string | null): void;
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
    socket.onopen = () => {
      this.listener.connected(true);
      this.listener.locked(null);
    };
    socket.onclose = () => {
      this.listener.connected(false);
      void this.askWhy();
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

  /** A socket does not say why it is refused; the same request without one does. */
  private async askWhy(): Promise<void> {
    try {
      const answer = await fetch("socket");
      this.listener.locked(answer.status === 403 ? await reasonOf(answer) : null);
    } catch {
      this.listener.locked(null); // nobody is there
    }
  }
}
