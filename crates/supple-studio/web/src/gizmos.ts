// Handles on the chosen bone: at the ends of its limits while those are drawn, and on its collision shape while shapes are. Dragged, they change the rig, on both sides alike.

import * as THREE from "three";
import { matrixOf } from "./figure";
import { markSize } from "./lines";
import { changeAcross, twinOf, type BoneChange } from "./mirror";
import type { Joint, SceneMessage, Shape } from "./protocol";
import type { Stage } from "./stage";

export interface GizmoEvents {
  send(message: object): void;
  chosen(): number | null;
  shown(): { limits: boolean; shapes: boolean };
  worldOf(body: number): THREE.Matrix4;
  /** A word beside the mouse; null: none. */
  tell(text: string | null, x: number, y: number): void;
}

/** Something that is dragged: where it is for a value, and what that value changes. */
interface Handle {
  name: string;
  value: number;
  least: number;
  most: number;
  at(value: number): THREE.Vector3;
  words(value: number): string;
  change(value: number): BoneChange;
}

/** How near the mouse must be [px]. */
const NEAR = 12;
const SAMPLES = 720;
const DEGREE = Math.PI / 180;
const [LIMIT, SHAPE] = [0xe08a2b, 0x2f8dff];

export class Gizmos {
  readonly group = new THREE.Group();
  private scene: SceneMessage | null = null;
  private handles: Handle[] = [];
  private key = "";
  private dragged: Handle | null = null;
  private readonly dots: THREE.Mesh[] = [];
  private readonly ball = new THREE.SphereGeometry(1, 16, 12);

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly stage: Stage,
    private readonly events: GizmoEvents,
  ) {
    const taken = (event: PointerEvent) => {
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    canvas.addEventListener("pointerdown", (event) => {
      const found = event.button === 0 ? this.under(event) : null;
      if (!found) return;
      this.dragged = found;
      stage.controls.enabled = false;
      canvas.setPointerCapture(event.pointerId);
      taken(event);
    }, { capture: true });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.dragged) return;
      taken(event);
      this.dragged.value = this.nearest(this.dragged, event);
      events.tell(this.dragged.words(this.dragged.value), event.offsetX, event.offsetY);
      this.place();
    }, { capture: true });
    canvas.addEventListener("pointerup", (event) => {
      if (!this.dragged) return;
      taken(event);
      this.drop(this.dragged);
    }, { capture: true });
  }

  setScene(scene: SceneMessage): void {
    this.scene = scene;
    this.key = "";
    this.dragged = null;
  }

  /** For tests: the handles and where they are on the screen. */
  get shown(): { name: string; value: number; at: [number, number] }[] {
    return this.handles.map((handle) => ({ name: handle.name, value: handle.value, at: this.screen(handle.at(handle.value)) }));
  }

  /** Once a frame. */
  tick(): void {
    const { scene } = this;
    const body = this.events.chosen();
    const { limits, shapes } = this.events.shown();
    const key = JSON.stringify([scene?.generation, body, limits, shapes]);
    if (key !== this.key && !this.dragged) {
      this.key = key;
      this.handles = scene && body !== null && body < scene.bones.length ? this.made(scene, body, limits, shapes) : [];
    }
    if (this.handles.length > 0 || this.dots.some((dot) => dot.visible)) this.place();
  }

  private made(scene: SceneMessage, body: number, limits: boolean, shapes: boolean): Handle[] {
    const joint = scene.joints.find(({ child }) => child === body);
    const handles = limits && joint ? this.ofJoint(scene, body, joint) : [];
    return shapes && scene.bodies[body]!.shapes.length > 0 ? [...handles, ...this.ofShapes(scene, body)] : handles;
  }

  /** Ends of ranges, on the parent's side of the joint. */
  private ofJoint(scene: SceneMessage, body: number, joint: Joint): Handle[] {
    const bone = scene.bones[body]!;
    const size = markSize(joint);
    const frame = matrixOf(joint.parent_frame);
    const world = (local: THREE.Vector3) => {
      const place = local.multiplyScalar(size).applyMatrix4(frame);
      return joint.parent === null ? place : place.applyMatrix4(this.events.worldOf(joint.parent));
    };
    const about = (axis: number, zero: number, angle: number, lift = 0) =>
      world(new THREE.Vector3().setComponent(zero, 1 - 0.4 * lift).applyAxisAngle(new THREE.Vector3().setComponent(axis, 1), angle).addScaledVector(new THREE.Vector3().setComponent(axis, 1), lift));
    // Ranges are told from the pose at rest; the joint counts from its own zero: what a handle is moved by is the same in both.
    const end = (what: "range" | "twist", told: [number, number], angles: [number, number], axis: number, zero: number, lift: number) =>
      [0, 1].map((k): Handle => {
        const begin = angles[k]!;
        const changed = (value: number): [number, number] => {
          const moved = told.slice() as [number, number];
          moved[k] = told[k]! + (value - begin) / DEGREE;
          return moved;
        };
        return {
          name: `${what} ${k}`,
          value: begin,
          least: k === 0 ? -Math.PI : angles[0] + DEGREE,
          most: k === 0 ? angles[1] - DEGREE : Math.PI,
          at: (angle) => about(axis, zero, angle, lift),
          words: (angle) => `${what} ${Math.round(changed(angle)[0])}° to ${Math.round(changed(angle)[1])}°`,
          change: (angle) => ({ [what]: changed(angle) }),
        };
      });
    if (bone.range && joint.angle && joint.turning_axis !== null) {
      return end("range", bone.range, joint.angle, joint.turning_axis, (joint.turning_axis + 1) % 3, 0);
    }
    const handles: Handle[] = [];
    if (bone.swing && joint.swing) {
      const [told, half] = [bone.swing, joint.swing];
      [1, 2].forEach((axis, k) => {
        const changed = (value: number): [number, number] => {
          const moved = told.slice() as [number, number];
          moved[k] = Math.min(180, Math.max(1, value / DEGREE));
          return moved;
        };
        handles.push({
          name: `swing ${k}`,
          value: half[k]!,
          least: DEGREE,
          most: Math.PI,
          at: (angle) => about(axis, 0, angle),
          words: (angle) => `swing ${changed(angle).map(Math.round).join("° × ")}°`,
          change: (angle) => ({ swing: changed(angle) }),
        });
      });
    }
    if (bone.twist && joint.angle) handles.push(...end("twist", bone.twist, joint.angle, 0, 1, 0.5));
    return handles;
  }

  /** Across and along the shapes of a bone. */
  private ofShapes(scene: SceneMessage, body: number): Handle[] {
    const points = scene.bodies[body]!.shapes.flatMap(cornersOf);
    const box = new THREE.Box3().setFromPoints(points);
    const centre = box.getCenter(new THREE.Vector3());
    const one = scene.bodies[body]!.shapes.length === 1 ? scene.bodies[body]!.shapes[0]! : null;
    const far = points.map((p) => p.clone().sub(centre)).reduce((a, b) => (a.length() > b.length() ? a : b));
    // As the server has it: of one capsule or box its own axis, else the way to the farthest point.
    const along = (one && one.shape !== "hull" && one.shape !== "mesh" ? ownAxis(one) : far).clone().normalize();
    const across = new THREE.Vector3(0, 0, 1).cross(along).lengthSq() > 0.1 ? new THREE.Vector3(0, 0, 1).cross(along).normalize() : new THREE.Vector3(1, 0, 0).cross(along).normalize();
    const half = (way: THREE.Vector3) => Math.max(...points.map((p) => p.clone().sub(centre).dot(way)), 1e-3);
    const handle = (name: "width" | "length", way: THREE.Vector3): Handle => {
      const reach = half(way);
      return {
        name,
        value: 0,
        // on a logarithmic scale
        least: Math.log(0.2),
        most: Math.log(5),
        at: (value) => way.clone().multiplyScalar(reach * Math.exp(value)).add(centre).applyMatrix4(this.events.worldOf(body)),
        words: (value) => `${name} × ${Math.exp(value).toFixed(2)}`,
        change: (value) => ({ [name]: Math.exp(value) }),
      };
    };
    return [handle("width", across), handle("length", along)];
  }

  private place(): void {
    while (this.dots.length < this.handles.length) {
      const dot = new THREE.Mesh(this.ball, new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, fog: false, toneMapped: false }));
      dot.renderOrder = 5;
      this.dots.push(dot);
      this.group.add(dot);
    }
    const before = JSON.stringify(this.dots.map(({ visible, position, scale }) => [visible, position, scale.x]));
    this.dots.forEach((dot, k) => {
      const handle = this.handles[k];
      dot.visible = handle !== undefined;
      if (!handle) return;
      dot.position.copy(handle.at(handle.value));
      dot.scale.setScalar(0.008 * this.stage.camera.position.distanceTo(dot.position));
      (dot.material as THREE.MeshBasicMaterial).color.set(handle.name === "width" || handle.name === "length" ? SHAPE : LIMIT);
    });
    if (JSON.stringify(this.dots.map(({ visible, position, scale }) => [visible, position, scale.x])) !== before) this.stage.touch();
  }

  private screen(place: THREE.Vector3): [number, number] {
    const p = place.clone().project(this.stage.camera);
    const box = this.canvas.getBoundingClientRect();
    return [box.left + ((p.x + 1) / 2) * box.width, box.top + ((1 - p.y) / 2) * box.height];
  }

  private under(event: PointerEvent): Handle | null {
    const far = (handle: Handle) => {
      const [x, y] = this.screen(handle.at(handle.value));
      return Math.hypot(x - event.clientX, y - event.clientY);
    };
    const near = this.handles.filter((handle) => far(handle) < NEAR).sort((a, b) => far(a) - far(b));
    return near[0] ?? null;
  }

  /** The value that brings a handle nearest to the mouse; of several, the one nearest to what it has. */
  private nearest(handle: Handle, event: PointerEvent): number {
    let [best, least] = [handle.value, Infinity];
    for (let k = 0; k <= SAMPLES; k++) {
      const value = handle.least + ((handle.most - handle.least) * k) / SAMPLES;
      const [x, y] = this.screen(handle.at(value));
      const far = Math.hypot(x - event.clientX, y - event.clientY) + 8 * Math.abs(value - handle.value);
      if (far < least) [best, least] = [value, far];
    }
    return best;
  }

  private drop(handle: Handle): void {
    const [scene, body] = [this.scene, this.events.chosen()];
    this.dragged = null;
    this.stage.controls.enabled = true;
    this.events.tell(null, 0, 0);
    this.key = ""; // made anew from what the server says
    if (!scene || body === null) return;
    const change = handle.change(handle.value);
    const twin = twinOf(scene, body);
    const across = twin === null ? {} : { twin: { bone: scene.bones[twin]!.name, change: changeAcross(scene, body, twin, change) } };
    this.events.send({ type: "bone", bone: scene.bones[body]!.name, change, ...across });
  }
}

function ownAxis(shape: Shape): THREE.Vector3 {
  const local = new THREE.Vector3(1, 0, 0);
  if (shape.shape === "cuboid") local.set(0, 0, 0).setComponent(shape.size.indexOf(Math.max(...shape.size)), 1);
  return local.applyQuaternion(new THREE.Quaternion(...shape.frame.rotation));
}

/** Points that tell how far a shape reaches, in coordinates of its body. */
function cornersOf(shape: Shape): THREE.Vector3[] {
  const ends = (x: number, r: number) => [[x, 0, 0], [0, r, 0], [0, 0, r]].flatMap(([a, b, c]) => [new THREE.Vector3(a, b, c), new THREE.Vector3(-a!, -b!, -c!)]);
  const frame = matrixOf(shape.frame);
  const own = (): THREE.Vector3[] => {
    switch (shape.shape) {
      case "sphere":
        return ends(shape.radius, shape.radius);
      case "capsule":
        return ends(0.5 * shape.length + shape.radius, shape.radius);
      case "cylinder":
        return ends(0.5 * shape.length, shape.radius);
      case "cuboid":
        return shape.size.flatMap((size, k) => [0.5, -0.5].map((s) => new THREE.Vector3().setComponent(k, s * size)));
      case "hull":
        return shape.points.map((p) => new THREE.Vector3(...p));
      case "mesh":
        return shape.vertices.map((p) => new THREE.Vector3(...p));
      default:
        return [];
    }
  };
  return own().map((p) => p.applyMatrix4(frame));
}
