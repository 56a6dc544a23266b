// What is drawn as lines and arrows over the character: bones, joint axes, limits, forces.

import * as THREE from "three";
import { matrixOf } from "./figure";
import type { Joint, MovingFrame, SceneMessage } from "./protocol";

/** Points carried by bodies, drawn as segments: one draw call however many there are. */
class CarriedLines {
  readonly object: THREE.LineSegments;
  private readonly bodies: Int32Array;
  private readonly points: Float32Array;
  private readonly positions: THREE.BufferAttribute;

  constructor(segments: Segment[], material: THREE.LineBasicMaterial) {
    this.bodies = new Int32Array(2 * segments.length);
    this.points = new Float32Array(6 * segments.length);
    const colours = new Float32Array(6 * segments.length);
    segments.forEach((segment, k) => {
      const ends = [segment.from, segment.to];
      ends.forEach((end, e) => {
        this.bodies[2 * k + e] = segment.body;
        end.toArray(this.points, 6 * k + 3 * e);
        segment.colour.toArray(colours, 6 * k + 3 * e);
      });
    });
    const geometry = new THREE.BufferGeometry();
    this.positions = new THREE.BufferAttribute(new Float32Array(6 * segments.length), 3).setUsage(THREE.DynamicDrawUsage);
    geometry.setAttribute("position", this.positions);
    geometry.setAttribute("color", new THREE.BufferAttribute(colours, 3));
    this.object = new THREE.LineSegments(geometry, material);
    this.object.frustumCulled = false;
    this.object.renderOrder = 2;
  }

  move(worlds: Float32Array): void {
    const out = this.positions.array as Float32Array;
    for (let k = 0; k < this.bodies.length; k++) {
      const x = this.points[3 * k]!, y = this.points[3 * k + 1]!, z = this.points[3 * k + 2]!;
      const at = 16 * this.bodies[k]!;
      for (let row = 0; row < 3; row++) {
        out[3 * k + row] =
          at < 0
            ? this.points[3 * k + row]! // of the world
            : worlds[at + row]! * x + worlds[at + 4 + row]! * y + worlds[at + 8 + row]! * z + worlds[at + 12 + row]!;
      }
    }
    this.positions.needsUpdate = true;
  }

  dispose(): void {
    this.object.geometry.dispose();
    (this.object.material as THREE.Material).dispose();
  }
}

interface Segment {
  /** Index of the body that carries it, -1 for the world. */
  body: number;
  from: THREE.Vector3;
  to: THREE.Vector3;
  colour: THREE.Color;
}

export type LineLayer = "bones" | "axes" | "limits";

export class Lines {
  readonly group = new THREE.Group();
  readonly forces = new Arrows();
  private readonly layers: Record<LineLayer, CarriedLines>;

  constructor(message: SceneMessage) {
    const over = () => new THREE.LineBasicMaterial({ vertexColors: true, depthTest: false, transparent: true, fog: false });
    this.layers = {
      bones: new CarriedLines(bones(message), over()),
      axes: new CarriedLines(axes(message), over()),
      limits: new CarriedLines(limits(message), over()),
    };
    for (const layer of Object.values(this.layers)) {
      layer.object.visible = false;
      this.group.add(layer.object);
    }
    this.group.add(this.forces.group);
  }

  show(layer: LineLayer, visible: boolean): void {
    this.layers[layer].object.visible = visible;
  }

  move(worlds: Float32Array): void {
    for (const layer of Object.values(this.layers)) if (layer.object.visible) layer.move(worlds);
  }

  dispose(): void {
    for (const layer of Object.values(this.layers)) layer.dispose();
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
function markSize(joint: Joint): number {
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
function limits(message: SceneMessage): Segment[] {
  const segments: Segment[] = [];
  for (const joint of message.joints) {
    const size = markSize(joint);
    const frame = matrixOf(joint.parent_frame);
    const centre = point(joint.parent_frame.position);
    const body = joint.parent ?? -1;
    const fan = (directions: THREE.Vector3[], closed: boolean, rays: number) => {
      const rim = directions.map((d) => d.multiplyScalar(size).applyMatrix4(frame));
      rim.forEach((to, k) => {
        const next = rim[k + 1] ?? (closed ? rim[0]! : null);
        if (next) segments.push({ body, from: to, to: next, colour: LIMIT });
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
  return segments;
}

const MOST_ARROWS = 128;
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
      const length = radius * 1.2 * Math.tanh(strength / unit / 1.2);
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
