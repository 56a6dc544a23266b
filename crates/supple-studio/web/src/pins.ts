// Pins in the picture: a mark where each holds its body. Dragged, it leads the body along, in the plane across the line of sight.

import * as THREE from "three";
import type { StatusMessage } from "./protocol";
import type { Stage } from "./stage";

export interface PinEvents {
  send(message: object): void;
  status(): StatusMessage | null;
}

/** How near the mouse must be, and how large a mark is [px]. */
const [NEAR, SIZE] = [12, 9];
const [COLOUR, DRAGGED] = [0xe02b2b, 0xffd21f];

export class Pins {
  readonly group = new THREE.Group();
  private readonly marks: THREE.Mesh<THREE.BufferGeometry, THREE.MeshBasicMaterial>[] = [];
  private dragged: { body: number; place: THREE.Vector3; sent: string } | null = null;
  /** An octahedron where the place alone is held, a box where the orientation is as well. */
  private readonly shapes = [new THREE.OctahedronGeometry(1), new THREE.BoxGeometry(1.5, 1.5, 1.5)];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly stage: Stage,
    private readonly events: PinEvents,
  ) {
    const taken = (event: PointerEvent) => {
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    canvas.addEventListener("pointerdown", (event) => {
      const found = event.button === 0 ? this.under(event) : null;
      if (!found) return;
      this.dragged = { ...found, sent: JSON.stringify(found.place.toArray()) };
      stage.controls.enabled = false;
      canvas.setPointerCapture(event.pointerId);
      taken(event);
    }, { capture: true });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.dragged) return;
      taken(event);
      this.lead(event);
    }, { capture: true });
    const drop = (event: PointerEvent) => {
      if (!this.dragged) return;
      taken(event);
      this.send();
      this.dragged = null;
      stage.controls.enabled = true;
    };
    canvas.addEventListener("pointerup", drop, { capture: true });
    canvas.addEventListener("pointercancel", drop, { capture: true });
  }

  /** For tests: the marks and where they are on the screen. */
  get shown(): { body: number; turned: boolean; place: number[]; at: [number, number] }[] {
    return this.all().map(({ body, turned, place }) => ({ body, turned, place: place.toArray(), at: this.screen(place) }));
  }

  /** Once a frame: marks are where pins are, and what is dragged is told. */
  tick(): void {
    this.send();
    const all = this.all();
    while (this.marks.length < all.length) {
      const mark = new THREE.Mesh(this.shapes[0]!, new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.9, toneMapped: false }));
      mark.renderOrder = 5;
      mark.raycast = () => {};
      this.marks.push(mark);
      this.group.add(mark);
    }
    this.marks.forEach((mark, k) => {
      const pin = all[k];
      mark.visible = pin !== undefined;
      if (!pin) return;
      mark.geometry = this.shapes[pin.turned ? 1 : 0]!;
      mark.material.color.setHex(pin.body === this.dragged?.body ? DRAGGED : COLOUR);
      mark.position.copy(pin.place);
      mark.scale.setScalar(this.metres(pin.place, SIZE));
    });
  }

  private all(): { body: number; turned: boolean; place: THREE.Vector3 }[] {
    const status = this.events.status();
    return (status?.pins ?? []).map((body, k) => {
      const place = this.dragged?.body === body ? this.dragged.place : new THREE.Vector3(...status!.pin_places[k]!);
      return { body, turned: status!.pin_turns[k]!, place };
    });
  }

  private under(event: PointerEvent): { body: number; place: THREE.Vector3 } | null {
    const far = ({ place }: { place: THREE.Vector3 }) => {
      const [x, y] = this.screen(place);
      return Math.hypot(x - event.offsetX, y - event.offsetY);
    };
    const near = this.all().filter((pin) => far(pin) < NEAR);
    near.sort((a, b) => far(a) - far(b));
    return near[0] ? { body: near[0].body, place: near[0].place.clone() } : null;
  }

  /** The mark goes under the mouse, as far from the camera as it was. */
  private lead(event: PointerEvent): void {
    const { camera } = this.stage;
    const { clientWidth, clientHeight } = this.canvas;
    const depth = this.dragged!.place.clone().project(camera).z;
    this.dragged!.place.set((2 * event.offsetX) / clientWidth - 1, 1 - (2 * event.offsetY) / clientHeight, depth).unproject(camera);
  }

  private send(): void {
    if (!this.dragged) return;
    const at = this.dragged.place.toArray();
    const told = JSON.stringify(at);
    if (told === this.dragged.sent) return;
    this.dragged.sent = told;
    this.events.send({ type: "pin", body: this.dragged.body, on: true, at });
  }

  private screen(place: THREE.Vector3): [number, number] {
    const { x, y } = place.clone().project(this.stage.camera);
    return [(0.5 + 0.5 * x) * this.canvas.clientWidth, (0.5 - 0.5 * y) * this.canvas.clientHeight];
  }

  /** So many pixels at a place, in metres. */
  private metres(place: THREE.Vector3, pixels: number): number {
    const camera = this.stage.camera as THREE.PerspectiveCamera;
    const distance = place.clone().applyMatrix4(camera.matrixWorldInverse).z;
    return (pixels * 2 * Math.abs(distance) * Math.tan((0.5 * camera.fov * Math.PI) / 180)) / this.canvas.clientHeight;
  }
}
