// What is drawn as lines and arrows over the character: bones, joint axes, limits, forces.

import * as THREE from "three";
import { matrixOf } from "./figure";
import type { Joint, MovingFrame, SceneMessage } from "./protocol";

/** Points carried by bodies, two to a segment or three to a triangle: one draw call however many there are. */
class Carried {
  readonly object: THREE.LineSegments | THREE.Mesh;
  private readonly bodies: Int32Array;
  private readonly points: Float32Array;
  private readonly positions: THREE.BufferAttribute;

  constructor(corners: Corner[], look: "segments" | "faces") {
    this.bodies = new Int32Array(corners.length);
    this.points = new Float32Array(3 * corners.length);
    const colours = new Float32Array(3 * corners.length);
    corners.forEach((corner, k) => {
      this.bodies[k] = corner.body;
      corner.point.toArray(this.points, 3 * k);
      corner.colour.toArray(colours, 3 * k);
    });
    const geometry = new THREE.BufferGeometry();
    this.positions = new THREE.BufferAttribute(new Float32Array(3 * corners.length), 3).setUsage(THREE.DynamicDrawUsage);
    geometry.setAttribute("position", this.positions);
    geometry.setAttribute("color", new THREE.BufferAttribute(colours, 3));
    const over = { vertexColors: true, depthTest: false, depthWrite: false, transparent: true, fog: false };
    this.object =
      look === "segments"
        ? new THREE.LineSegments(geometry, new THREE.LineBasicMaterial(over))
        : new THREE.Mesh(geometry, new THREE.MeshBasicMaterial({ ...over, opacity: 0.18, side: THREE.DoubleSide }));
    this.object.frustumCulled = false;
    this.object.renderOrder = look === "segments" ? 2 : 1;
  }

  move(worlds: Float32Array): void {
    const { bodies, points } = this;
    const out = this.positions.array as Float32Array;
    for (let k = 0, p = 0; k < bodies.length; k++, p += 3) {
      const x = points[p]!, y = points[p + 1]!, z = points[p + 2]!;
      const at = 16 * bodies[k]!;
      const carried = at >= 0; // or of the world
      out[p] = carried ? worlds[at]! * x + worlds[at + 4]! * y + worlds[at + 8]! * z + worlds[at + 12]! : x;
      out[p + 1] = carried ? worlds[at + 1]! * x + worlds[at + 5]! * y + worlds[at + 9]! * z + worlds[at + 13]! : y;
      out[p + 2] = carried ? worlds[at + 2]! * x + worlds[at + 6]! * y + worlds[at + 10]! * z + worlds[at + 14]! : z;
    }
    this.positions.needsUpdate = true;
  }

  dispose(): void {
    this.object.geometry.dispose();
    (this.object.material as THREE.Material).dispose();
  }
}

interface Corner {
  body: number;
  point: THREE.Vector3;
  colour: THREE.Color;
}

interface Segment {
  /** Index of the body that carries it, -1 for the world. */
  body: number;
  from: THREE.Vector3;
  to: THREE.Vector3;
  colour: THREE.Color;
}

const ends = (segments: Segment[]): Corner[] =>
  segments.flatMap(({ body, from, to, colour }) => [{ body, point: from, colour }, { body, point: to, colour }]);

export type LineLayer = "bones" | "axes" | "limits";

export class Lines {
  readonly group = new THREE.Group();
  readonly forces = new Arrows();
  private readonly segments: Record<LineLayer, Segment[]>;
  private readonly faces: Corner[];
  private readonly shown = new Set<LineLayer>();
  /** What is shown, in one object for all segments and one for all faces. */
  private parts: Carried[] = [];

  constructor(message: SceneMessage) {
    const ranges = limits(message);
    this.segments = { bones: bones(message), axes: axes(message), limits: ranges.segments };
    this.faces = ranges.faces;
    this.group.add(this.forces.group);
  }

  show(layer: LineLayer, visible: boolean): void {
    if (this.shown.has(layer) === visible) return;
    if (visible) this.shown.add(layer);
    else this.shown.delete(layer);
    this.remove();
    const corners = [...this.shown].flatMap((name) => ends(this.segments[name]));
    if (corners.length > 0) this.parts.push(new Carried(corners, "segments"));
    if (this.shown.has("limits") && this.faces.length > 0) this.parts.push(new Carried(this.faces, "faces"));
    for (const part of this.parts) this.group.add(part.object);
  }

  move(worlds: Float32Array): void {
    for (const part of this.parts) part.move(worlds);
  }

  private remove(): void {
    for (const part of this.parts) {
      this.group.remove(part.object);
      part.dispose();
    }
    this.parts = [];
  }

  dispose(): void {
    this.remove();
    this.forces.dispose();
  }
}

const BONE = new THREE.Color(0xf59e0b);
const RGB = [0xe4572e, 0x2e9e5b, 0x3878d6].map((c) => new THREE.Color(c)); // X, Y, Z
const LIMIT = new THREE.Color(0xb45fd0);
const NEEDLE = new THREE.Color(0xf59e0b);

const point = (p: [number, number, number]) => new THREE.Vector3(...p);

/** From the joint that holds a body to the joints that it holds; at a loose end through its centre of mass and as far again. */
function bones(message: SceneMessage): Segment[] {
  const holds: Joint[][] = message.bodies.map(() => []);
  const held: (Joint | null)[] = message.bodies.map(() => null);
  for (const joint of message.joints) {
    held[joint.child] = joint;
    if (joint.parent !== null) holds[joint.parent]!.push(joint);
  }
  const segments: Segment[] = [];
  message.bodies.forEach((_, body) => {
    const own = held[body];
    const from = own ? point(own.child_frame.position) : new THREE.Vector3();
    const ends = holds[body]!.map((joint) => point(joint.parent_frame.position));
    if (ends.length === 0) ends.push(from.clone().negate());
    for (const to of ends) segments.push({ body, from, to, colour: BONE });
  });
  return segments;
}

/** How long to draw the marks of a joint: half its distance from the child's centre of mass. */
export function markSize(joint: Joint): number {
  return Math.max(0.6 * point(joint.child_frame.position).length(), 1e-3);
}

function axes(message: SceneMessage): Segment[] {
  return message.joints.flatMap((joint) => {
    const frame = matrixOf(joint.child_frame);
    const from = point(joint.child_frame.position);
    return RGB.map((colour, k) => {
      const axis = new THREE.Vector3().setFromMatrixColumn(frame, k).multiplyScalar(markSize(joint));
      return { body: joint.child, from, to: from.clone().add(axis), colour };
    });
  });
}

/** Ranges of angle as arcs, swing ellipses as cones, both on the parent; a needle on the child shows where it is. */
function limits(message: SceneMessage): { segments: Segment[]; faces: Corner[] } {
  const segments: Segment[] = [];
  const faces: Corner[] = [];
  for (const joint of message.joints) {
    const size = markSize(joint);
    const frame = matrixOf(joint.parent_frame);
    const centre = point(joint.parent_frame.position);
    const body = joint.parent ?? -1;
    const fan = (directions: THREE.Vector3[], closed: boolean, rays: number) => {
      const rim = directions.map((d) => d.multiplyScalar(size).applyMatrix4(frame));
      rim.forEach((to, k) => {
        const next = rim[k + 1] ?? (closed ? rim[0]! : null);
        if (next) {
          segments.push({ body, from: to, to: next, colour: LIMIT });
          faces.push(...[centre, to, next].map((point) => ({ body, point, colour: LIMIT })));
        }
        if (k % rays === 0 || (!closed && k === rim.length - 1)) segments.push({ body, from: centre, to, colour: LIMIT });
      });
    };
    const needle = (axis: number) => {
      const child = matrixOf(joint.child_frame);
      const from = point(joint.child_frame.position);
      const along = new THREE.Vector3().setFromMatrixColumn(child, axis).multiplyScalar(1.15 * size);
      segments.push({ body: joint.child, from, to: from.clone().add(along), colour: NEEDLE });
    };
    if (joint.swing) {
      const [a, b] = joint.swing;
      const directions = Array.from({ length: 24 }, (_, k) => {
        const t = (k / 24) * 2 * Math.PI;
        const turn = new THREE.Vector3(0, a * Math.cos(t), b * Math.sin(t));
        const angle = turn.length();
        return new THREE.Vector3(1, 0, 0).applyAxisAngle(turn.normalize(), angle);
      });
      fan(directions, true, 6);
      needle(0);
    } else if (joint.angle && joint.turning_axis !== null) {
      const [min, max] = [Math.max(joint.angle[0], -Math.PI), Math.min(joint.angle[1], Math.PI)];
      const axis = new THREE.Vector3().setComponent(joint.turning_axis, 1);
      const zero = new THREE.Vector3().setComponent((joint.turning_axis + 1) % 3, 1);
      const steps = 16;
      const directions = Array.from({ length: steps + 1 }, (_, k) =>
        zero.clone().applyAxisAngle(axis, min + ((max - min) * k) / steps),
      );
      fan(directions, false, steps);
      needle((joint.turning_axis + 1) % 3);
    }
  }
  return { segments, faces };
}

const MOST_ARROWS = 128;
/** Length that no arrow reaches, in radii of the character. */
const LONGEST = 0.6;
const PULLERS = [0x8a6fd1, 0xd1495b, 0x2e8b57].map((c) => new THREE.Color(c)); // the scene, a person, a pin

/** Forces of pulls, as arrows at the pulled points, and the rubber band to the mouse. */
class Arrows {
  readonly group = new THREE.Group();
  private readonly shafts: THREE.InstancedMesh;
  private readonly heads: THREE.InstancedMesh;
  private readonly band: THREE.Line;

  constructor() {
    const mesh = (geometry: THREE.BufferGeometry) => {
      const material = new THREE.MeshBasicMaterial({ fog: false, depthTest: false, transparent: true });
      const instanced = new THREE.InstancedMesh(geometry, material, MOST_ARROWS);
      instanced.count = 0;
      instanced.frustumCulled = false;
      instanced.renderOrder = 3;
      this.group.add(instanced);
      return instanced;
    };
    // Along Y, from 0 to 1.
    this.shafts = mesh(new THREE.CylinderGeometry(0.35, 0.35, 1, 10).translate(0, 0.5, 0));
    this.heads = mesh(new THREE.ConeGeometry(1, 3, 14).translate(0, -0.5, 0));
    const geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(new Float32Array(6), 3));
    this.band = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: PULLERS[1]!, depthTest: false, transparent: true, fog: false }));
    this.band.frustumCulled = false;
    this.band.visible = false;
    this.band.renderOrder = 3;
    this.group.add(this.band);
  }

  /** Shows the pulls of a frame; `unit` is the force drawn as long as the character's radius. */
  show(frame: MovingFrame, radius: number, unit: number): void {
    const up = new THREE.Vector3(0, 1, 0);
    const [turn, matrix, size] = [new THREE.Quaternion(), new THREE.Matrix4(), new THREE.Vector3()];
    const thick = radius * 0.016;
    let count = 0;
    for (const drag of frame.drags.slice(0, MOST_ARROWS)) {
      const from = new THREE.Vector3().fromArray(drag.point);
      const force = new THREE.Vector3().fromArray(drag.force);
      const strength = force.length();
      const length = radius * LONGEST * Math.tanh(strength / unit / LONGEST);
      if (!(length > 0.02 * radius)) continue;
      turn.setFromUnitVectors(up, force.divideScalar(strength));
      this.shafts.setMatrixAt(count, matrix.compose(from, turn, size.set(thick, length, thick)));
      const tip = from.clone().addScaledVector(force, length);
      this.heads.setMatrixAt(count, matrix.compose(tip, turn, size.setScalar(thick * 1.6)));
      const colour = PULLERS[drag.puller] ?? PULLERS[1]!;
      this.shafts.setColorAt(count, colour);
      this.heads.setColorAt(count, colour);
      count++;
    }
    for (const mesh of [this.shafts, this.heads]) {
      mesh.count = count;
      mesh.instanceMatrix.needsUpdate = true;
      if (mesh.instanceColor) mesh.instanceColor.needsUpdate = true;
    }
  }

  /** The line from the pulled point to the mouse, or none. */
  stretch(from: THREE.Vector3 | null, to: THREE.Vector3 | null): void {
    this.band.visible = from !== null && to !== null;
    if (!from || !to) return;
    const positions = this.band.geometry.getAttribute("position") as THREE.BufferAttribute;
    positions.setXYZ(0, from.x, from.y, from.z);
    positions.setXYZ(1, to.x, to.y, to.z);
    positions.needsUpdate = true;
  }

  dispose(): void {
    for (const mesh of [this.shafts, this.heads]) {
      mesh.geometry.dispose();
      (mesh.material as THREE.Material).dispose();
      mesh.dispose();
    }
    this.band.geometry.dispose();
    (this.band.material as THREE.Material).dispose();
  }
}
