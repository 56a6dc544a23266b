// Touching the skin with the mouse or a finger: a ball pokes it, or a vertex of it is pulled. Without a tool, bodies are pulled as ever (pull.ts).

import * as THREE from "three";
import type { Stage } from "./stage";

export type Tool = "pull" | "poke" | "grab";

export interface TouchEvents {
  send(message: object): void;
  /** How strong pulls are, as a factor. */
  strength(): number;
  /** Radius or depth were changed by the wheel. */
  sized(): void;
}

/** The pointer of what is held, told apart from pulls at bodies. */
const POINTER = 2;
/** A notch of the wheel makes the ball larger or smaller by this factor. */
const NOTCH = 1.1;

interface Held {
  pointer: number;
  plane: THREE.Plane;
  /** From where the mouse points on the plane to what is moved. */
  aside: THREE.Vector3;
  /** Where the ball would only touch, and the way from there into the picture. */
  into: THREE.Vector3;
  target: THREE.Vector3;
  vertex: number;
}

export class Touch {
  tool: Tool = "pull";
  /** The drawn skin, if there is one. */
  surface: THREE.Mesh | null = null;
  /** Radius of the ball [m], and how far it is pressed in, in radii. */
  radius = 0.05;
  press = 0.7;
  /** The ball before it is pressed, where it would touch. */
  readonly preview: THREE.Mesh<THREE.SphereGeometry, THREE.MeshStandardMaterial>;
  private held: Held | null = null;
  private unsent = false;
  private hovering: PointerEvent | null = null;
  private readonly ray = new THREE.Raycaster();

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly stage: Stage,
    private readonly events: TouchEvents,
  ) {
    const look = new THREE.MeshStandardMaterial({ color: 0xd1495b, transparent: true, opacity: 0.45, depthWrite: false });
    this.preview = new THREE.Mesh(new THREE.SphereGeometry(1, 32, 20), look);
    this.preview.visible = false;
    const first = { capture: true };
    canvas.addEventListener("pointerdown", (event) => this.begin(event), first);
    canvas.addEventListener("pointermove", (event) => this.move(event), first);
    canvas.addEventListener("pointerup", (event) => this.end(event), first);
    canvas.addEventListener("pointercancel", (event) => this.end(event), first);
    canvas.addEventListener("pointerleave", () => this.hide());
    canvas.addEventListener("wheel", (event) => this.roll(event), { capture: true, passive: false });
  }

  /** The pulled vertex, while one is held. */
  get grabbed(): { vertex: number; target: THREE.Vector3 } | null {
    return this.held && this.tool === "grab" ? this.held : null;
  }

  /** Whether a tool is in hand, so that bodies are not pulled. */
  get active(): boolean {
    return this.tool !== "pull" && this.surface !== null;
  }

  choose(tool: Tool): void {
    this.drop();
    this.tool = tool;
    this.hide();
  }

  /** Lets go. */
  drop(): void {
    if (this.held) this.events.send({ type: "release", pointer: POINTER });
    this.held = null;
    this.stage.controls.enabled = true;
  }

  /** Once a frame: sends where the mouse is, and shows where the ball would touch. */
  tick(): void {
    if (this.held && this.unsent) {
      this.unsent = false;
      this.send();
    }
    if (!this.hovering || this.held) return;
    const hit = this.pick(this.hovering);
    this.hovering = null;
    this.canvas.style.cursor = hit ? "crosshair" : "";
    const was = this.preview.visible;
    this.preview.visible = hit !== null && this.tool === "poke";
    if (hit && this.preview.visible) {
      this.preview.position.copy(hit.outside);
      this.preview.scale.setScalar(this.radius);
    }
    if (was || this.preview.visible) this.stage.touch();
  }

  private send(): void {
    const { held } = this;
    if (!held) return;
    const target = held.target.clone();
    if (this.tool === "poke") {
      target.addScaledVector(held.into, this.press * this.radius);
      this.events.send({ type: "poke", pointer: POINTER, centre: target.toArray(), radius: this.radius });
    } else {
      this.events.send({ type: "grab", pointer: POINTER, vertex: held.vertex, target: target.toArray(), strength: this.events.strength() });
    }
  }

  private hide(): void {
    this.hovering = null;
    if (this.preview.visible) this.stage.touch();
    this.preview.visible = false;
  }

  /** Where the mouse meets the skin, the nearest vertex, and where a ball that touches it there has its centre. */
  private pick(event: PointerEvent): { point: THREE.Vector3; vertex: number; outside: THREE.Vector3 } | null {
    if (!this.surface?.visible) return null;
    this.aim(event);
    const hit = this.ray.intersectObject(this.surface, false)[0];
    if (!hit?.face) return null;
    const normal = hit.face.normal.clone();
    if (normal.dot(this.ray.ray.direction) > 0) normal.negate();
    const places = this.surface.geometry.attributes.position as THREE.BufferAttribute;
    const distance = (v: number) => new THREE.Vector3().fromBufferAttribute(places, v).distanceTo(hit.point);
    const { a, b, c } = hit.face;
    const vertex = [a, b, c].reduce((nearest, v) => (distance(v) < distance(nearest) ? v : nearest));
    return { point: hit.point, vertex, outside: hit.point.clone().addScaledVector(normal, this.radius) };
  }

  private aim(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * 2 - 1;
    const y = 1 - ((event.clientY - box.top) / box.height) * 2;
    this.ray.setFromCamera(new THREE.Vector2(x, y), this.stage.camera);
  }

  private begin(event: PointerEvent): void {
    if (!this.active || event.button !== 0 || this.held) return;
    const hit = this.pick(event);
    if (!hit) return; // beside the skin the camera turns
    event.stopImmediatePropagation();
    this.canvas.focus();
    this.canvas.setPointerCapture(event.pointerId);
    this.stage.controls.enabled = false;
    this.hide();
    const poke = this.tool === "poke";
    const places = this.surface!.geometry.attributes.position as THREE.BufferAttribute;
    const target = poke ? hit.outside : new THREE.Vector3().fromBufferAttribute(places, hit.vertex);
    const facing = this.stage.camera.getWorldDirection(new THREE.Vector3());
    const plane = new THREE.Plane().setFromNormalAndCoplanarPoint(facing, target);
    const on = this.ray.ray.intersectPlane(plane, new THREE.Vector3()) ?? target;
    const into = this.ray.ray.direction.clone();
    this.held = { pointer: event.pointerId, plane, aside: target.clone().sub(on), into, target: target.clone(), vertex: hit.vertex };
    // The ball begins where it touches, and is pressed in from there.
    if (poke) this.events.send({ type: "poke", pointer: POINTER, centre: target.toArray(), radius: this.radius });
    this.unsent = true;
  }

  private move(event: PointerEvent): void {
    if (!this.active) return;
    const { held } = this;
    if (!held) {
      if (event.buttons === 0) {
        this.hovering = event;
        event.stopImmediatePropagation();
      }
      return;
    }
    if (event.pointerId !== held.pointer) return;
    event.stopImmediatePropagation();
    this.aim(event);
    const on = this.ray.ray.intersectPlane(held.plane, new THREE.Vector3());
    if (on) held.target.addVectors(on, held.aside);
    this.unsent = true;
  }

  private end(event: PointerEvent): void {
    if (!this.held || event.pointerId !== this.held.pointer) return;
    event.stopImmediatePropagation();
    if (this.unsent) this.send();
    this.drop();
  }

  /** The wheel changes the radius of the ball, with Shift how far it is pressed in. */
  private roll(event: WheelEvent): void {
    if (!this.active || this.tool !== "poke" || event.ctrlKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const notches = -(event.deltaY || event.deltaX) / 100;
    if (event.shiftKey) this.press = Math.min(Math.max(this.press + 0.1 * notches, 0), 3);
    else this.resize(this.radius * NOTCH ** Math.min(Math.max(notches, -5), 5));
    this.preview.scale.setScalar(this.radius);
    this.unsent = true;
    this.stage.touch();
    this.events.sized();
  }

  /** Sets the radius, within a hundredth and twice that of the character. */
  resize(radius: number): void {
    this.radius = Math.min(Math.max(radius, 0.01 * this.stage.radius), 2 * this.stage.radius);
    this.unsent = true;
  }
}
