// Pulling with the mouse, a finger or the keyboard: a spring in the plane that faces the camera.

import * as THREE from "three";
import type { Figure } from "./figure";
import type { SceneMessage } from "./protocol";
import type { Stage } from "./stage";

export interface PullEvents {
  /** Start or move a pull; with a rotation it turns the body too. */
  pull(body: number, point: THREE.Vector3, target: THREE.Vector3, rotation: THREE.Quaternion | null): void;
  /** Whether pulls can turn a body. */
  turns(): boolean;
  /** The only axis that a body can turn about, in the world; null: any. */
  turnsAbout(body: number): THREE.Vector3 | null;
  release(): void;
  /** Whether the mouse pulls bodies: something of them is drawn, and it holds no other tool. */
  ready(): boolean;
  hover(body: number | null, x: number, y: number): void;
  /** How fast a body is [m/s]. */
  speed(body: number): number;
  choose(body: number): void;
}

interface Held {
  pointer: number;
  body: number;
  /** In body coordinates. */
  point: THREE.Vector3;
  plane: THREE.Plane;
  target: THREE.Vector3;
  /** From where the mouse points to the target: what it moved while it turned the body. */
  aside: THREE.Vector3;
  /** The orientation asked for, once the body was turned. */
  rotation: THREE.Quaternion | null;
  /** Where the mouse was last. */
  at: [number, number];
}

/** A hand is so late [s]: what moved this far since is still hit, up to so many pixels. */
const LATE = 0.12;
const NEAR = 24;
/** With Shift a pixel of the mouse turns by this angle [rad]. */
const TURN = 0.008;

/** The axis about which a body can turn when its character moves in a plane, by hinges alone up to its root; null: it has others. */
export function planeAxis(scene: SceneMessage, body: number): THREE.Vector3 | null {
  let joint = scene.joints.find(({ child }) => child === body);
  while (joint?.kind === "hinge" && joint.parent !== null) {
    const { parent } = joint;
    joint = scene.joints.find(({ child }) => child === parent);
  }
  if (joint?.kind !== "planar") return null;
  return new THREE.Vector3(1, 0, 0).applyQuaternion(new THREE.Quaternion().fromArray(joint.parent_frame.rotation));
}

export class Pull {
  figure: Figure | null = null;
  private held: Held | null = null;
  private readonly ray = new THREE.Raycaster();
  private hovering: PointerEvent | null = null;
  private unsent = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly stage: Stage,
    private readonly events: PullEvents,
  ) {
    // Before the camera's own listeners: a press on a body is a pull, a press beside it turns the camera.
    canvas.addEventListener("pointerdown", (event) => this.press(event), { capture: true });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.lift(event));
    canvas.addEventListener("pointercancel", (event) => this.lift(event));
    canvas.addEventListener("pointerleave", () => {
      this.hovering = null;
      this.events.hover(null, 0, 0);
    });
  }

  /** The pulled body, its point and the target, if something is held. */
  get active(): { body: number; point: THREE.Vector3; target: THREE.Vector3 } | null {
    return this.held;
  }

  /** Once a frame: sends where the mouse is and looks what is under it. */
  tick(): void {
    if (this.held && this.unsent) {
      this.unsent = false;
      this.events.pull(this.held.body, this.held.point, this.held.target, this.held.rotation);
    }
    if (this.hovering && !this.held && this.figure && this.events.ready()) {
      const event = this.hovering;
      this.hovering = null;
      this.aim(event);
      this.events.hover(this.figure.pick(this.ray)?.body ?? null, event.offsetX, event.offsetY);
    }
  }

  /** Lets go, for example because another scene was opened. */
  drop(): void {
    if (this.held) this.events.release();
    this.held = null;
    this.stage.controls.enabled = true;
  }

  private aim({ clientX, clientY }: { clientX: number; clientY: number }): void {
    const box = this.canvas.getBoundingClientRect();
    const x = ((clientX - box.left) / box.width) * 2 - 1;
    const y = 1 - ((clientY - box.top) / box.height) * 2;
    this.ray.setFromCamera(new THREE.Vector2(x, y), this.stage.camera);
  }

  /** What is under the mouse, or was there a moment ago: a fast limb beside it. */
  private under({ clientX, clientY }: PointerEvent): { body: number; point: THREE.Vector3 } | null {
    this.aim({ clientX, clientY });
    const hit = this.figure!.pick(this.ray);
    if (hit) return hit;
    const { camera } = this.stage;
    const pixels = this.canvas.clientHeight / (2 * Math.tan(THREE.MathUtils.degToRad(0.5 * camera.fov)));
    for (let far = 8; far <= NEAR; far += 8) {
      for (let k = 0; k < 8; k++) {
        const [right, down] = [far * Math.cos((k * Math.PI) / 4), far * Math.sin((k * Math.PI) / 4)];
        this.aim({ clientX: clientX + right, clientY: clientY + down });
        const near = this.figure!.pick(this.ray);
        if (near && (this.events.speed(near.body) * LATE * pixels) / camera.position.distanceTo(near.point) >= far) return near;
      }
    }
    return null;
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0 || this.held || !this.figure || !this.events.ready()) return;
    const hit = this.under(event);
    if (!hit) return;
    event.stopImmediatePropagation();
    this.canvas.focus();
    this.canvas.setPointerCapture(event.pointerId);
    this.stage.controls.enabled = false;
    const facing = this.stage.camera.getWorldDirection(new THREE.Vector3());
    this.held = {
      pointer: event.pointerId,
      body: hit.body,
      point: hit.point.clone().applyMatrix4(this.figure.worldOf(hit.body).invert()),
      plane: new THREE.Plane().setFromNormalAndCoplanarPoint(facing, hit.point),
      target: hit.point.clone(),
      aside: new THREE.Vector3(),
      rotation: null,
      at: [event.clientX, event.clientY],
    };
    this.hovering = null;
    this.events.hover(null, 0, 0);
    this.events.choose(hit.body);
    this.unsent = true;
  }

  private move(event: PointerEvent): void {
    const held = this.held;
    if (!held) {
      if (event.buttons === 0) this.hovering = event;
      return;
    }
    if (event.pointerId !== held.pointer) return;
    this.aim(event);
    const hit = this.ray.ray.intersectPlane(held.plane, new THREE.Vector3());
    if (event.shiftKey && this.events.turns()) {
      this.turn(held, event.clientX - held.at[0], event.clientY - held.at[1]);
      if (hit) held.aside.subVectors(held.target, hit);
    } else if (hit) {
      held.target.addVectors(hit, held.aside);
    }
    held.at = [event.clientX, event.clientY];
    this.unsent = true;
    this.stage.touch();
  }

  /** Turns what is held as a ball under the mouse would turn; what moves in a plane, like a wheel that rolls along with the mouse. */
  private turn(held: Held, right: number, down: number): void {
    const [x, y, z] = [new THREE.Vector3(), new THREE.Vector3(), new THREE.Vector3()];
    this.stage.camera.matrixWorld.extractBasis(x, y, z);
    const only = this.events.turnsAbout(held.body);
    const axis = only ? only.multiplyScalar(only.dot(z) > 0 ? -right : right) : x.multiplyScalar(down).addScaledVector(y, right);
    held.rotation ??= new THREE.Quaternion().setFromRotationMatrix(this.figure!.worldOf(held.body));
    if (axis.lengthSq() === 0) return;
    const angle = TURN * axis.length();
    held.rotation.premultiply(new THREE.Quaternion().setFromAxisAngle(axis.normalize(), angle)).normalize();
  }

  private lift(event: PointerEvent): void {
    if (!this.held || event.pointerId !== this.held.pointer) return;
    this.drop();
  }
}
