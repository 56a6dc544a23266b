// The bodies of the character: one instanced mesh per kind of solid, so that a thousand bodies take a handful of draw calls.
// A capsule is a cylinder and two spheres.

import * as THREE from "three";
import { RoundedBoxGeometry } from "three/addons/geometries/RoundedBoxGeometry.js";
import { ConvexGeometry } from "three/addons/geometries/ConvexGeometry.js";
import type { Heat } from "./heat";
import { JOINT, type Frame3, type MovingFrame, type SceneMessage, type Shape } from "./protocol";

/** Muted and told apart by colour-blind eyes by their lightness too. */
const PALETTE = [0xe0cba8, 0x5f97cb, 0xe59b4e, 0x78b585, 0xcd7672, 0x9c82c2, 0x58b0ad, 0xd6c04c].map((c) =>
  new THREE.Color(c).lerp(new THREE.Color(0xe6e0d6), 0.16),
);
const TROUBLE = new THREE.Color(0xd0021b);
/** With no more sizes of boxes than this, each gets rounded edges of its own; with more, all share one sharp cube. */
const ROUNDED_SIZES = 4;
const HOVERED = new THREE.Color(0x3d9bff);

interface Part {
  body: number;
  solid: Solid;
  /** Place in the solid's instances. */
  instance: number;
  /** body_from_unit: placement and size of the unit solid. */
  local: Float32Array;
}

interface Solid {
  mesh: THREE.InstancedMesh;
  ghost: THREE.InstancedMesh;
  parts: Part[];
}

export class Figure {
  readonly group = new THREE.Group();
  /** Things that were put into the scene: drawn whatever else is. */
  readonly things = new THREE.Group();
  readonly ghosts = new THREE.Group();
  /** world_from_body, sixteen numbers a body. */
  readonly worlds: Float32Array;
  private readonly solids: Solid[] = [];
  private readonly colours: THREE.Color[];
  private readonly bodyOf = new Map<THREE.Object3D, Part[]>();
  private highlighted: number | null = null;
  /** What the bodies are coloured by now: nothing is written when that is what is asked for. */
  private worn = "";
  private readonly jointOf: Int32Array;

  constructor(readonly message: SceneMessage) {
    const count = message.bodies.length;
    this.worlds = new Float32Array(16 * count);
    this.colours = limbColours(message);
    this.jointOf = new Int32Array(count).fill(-1);
    message.joints.forEach((joint, k) => (this.jointOf[joint.child] = k));

    const fine = count <= 300;
    const [around, along] = fine ? [28, 18] : [14, 9];
    const units = {
      sphere: new THREE.SphereGeometry(1, around, along),
      cuboid: new THREE.BoxGeometry(1, 1, 1),
      cylinder: new THREE.CylinderGeometry(1, 1, 1, around).rotateZ(-Math.PI / 2),
    };
    type Plans = Map<THREE.BufferGeometry, { body: number; local: THREE.Matrix4 }[]>;
    const [plans, apart]: [Plans, Plans] = [new Map(), new Map()];
    const first = count - message.thing_bodies;
    const props = new Set(message.props.map(({ body }) => body));
    const add = (geometry: THREE.BufferGeometry, body: number, local: THREE.Matrix4) => {
      // What has a file is drawn as that has it.
      const meant = body < first || props.has(body) ? plans : apart;
      const list = meant.get(geometry) ?? [];
      list.push({ body, local });
      meant.set(geometry, list);
    };
    const boxes = roundedBoxes(message);
    message.bodies.forEach((body, index) => {
      // Boxes from the shelf have sharp edges, as they touch.
      const rounded = index < first ? boxes : new Map();
      for (const shape of body.shapes) place(shape, units, rounded, (geometry, local) => add(geometry, index, local));
    });

    const tracked = new Set(message.trackers.map((tracker) => tracker.body));
    for (const [geometry, plan] of [...plans, ...apart]) {
      const material = new THREE.MeshStandardMaterial({ roughness: 0.6, metalness: 0 });
      const mesh = new THREE.InstancedMesh(geometry, material, plan.length);
      mesh.castShadow = mesh.receiveShadow = true;
      const ghostly = plan.filter((p) => tracked.has(p.body)).length;
      const ghost = new THREE.InstancedMesh(geometry, ghostMaterial(), Math.max(ghostly, 1));
      ghost.count = 0;
      for (const m of [mesh, ghost]) {
        m.frustumCulled = false;
        m.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
        // Moving instances have no fixed bounds; rays test each instance.
        m.boundingSphere = new THREE.Sphere(new THREE.Vector3(), Infinity);
      }
      const solid: Solid = { mesh, ghost, parts: [] };
      plan.forEach(({ body, local }, instance) => {
        solid.parts.push({ body, solid, instance, local: new Float32Array(local.elements) });
        mesh.setColorAt(instance, this.colours[body]!);
      });
      this.solids.push(solid);
      this.bodyOf.set(mesh, solid.parts);
      (plan[0]!.body < first || props.has(plan[0]!.body) ? this.group : this.things).add(mesh);
      this.ghosts.add(ghost);
    }
  }

  /** Moves everything to where the frame says. */
  move(frame: MovingFrame): void {
    for (let body = 0; body < this.message.bodies.length; body++) {
      writeRigid(frame.poses, 7 * body, this.worlds, 16 * body);
    }
    for (const { mesh, parts } of this.solids) {
      const out = mesh.instanceMatrix.array as Float32Array;
      for (const part of parts) multiply(this.worlds, 16 * part.body, part.local, out, 16 * part.instance);
      mesh.instanceMatrix.needsUpdate = true;
    }
    if (this.ghosts.visible) this.moveGhosts(frame);
  }

  private moveGhosts(frame: MovingFrame): void {
    const world = new Float32Array(16);
    const poses = new Map<number, Float32Array>();
    for (const { tracker, pose } of frame.targets) {
      const line = this.message.trackers[tracker];
      if (!line) continue;
      writeRigid(pose, 0, world, 0);
      // The tracked point lies at the target: the body's origin lies before it.
      const [x, y, z] = line.point;
      for (let k = 0; k < 3; k++) world[12 + k]! -= world[k]! * x + world[4 + k]! * y + world[8 + k]! * z;
      poses.set(line.body, world.slice());
    }
    for (const { ghost, parts } of this.solids) {
      const out = ghost.instanceMatrix.array as Float32Array;
      let count = 0;
      for (const part of parts) {
        const pose = poses.get(part.body);
        if (pose) multiply(pose, 0, part.local, out, 16 * count++);
      }
      ghost.count = count;
      ghost.instanceMatrix.needsUpdate = true;
    }
  }

  /** Colours bodies by their limb, or by a number of the joint that holds them; a body in trouble is red. */
  colour(frame: MovingFrame, heat: Heat | null, trouble: number | null): void {
    const wanted = heat ? "" : `${this.highlighted} ${trouble}`;
    if (wanted !== "" && wanted === this.worn) return;
    this.worn = wanted;
    const mixed = new THREE.Color();
    for (const { mesh, parts } of this.solids) {
      for (const part of parts) {
        const joint = this.jointOf[part.body]!;
        if (heat) heat.colour(joint < 0 ? 0 : frame.joints[JOINT.size * joint + heat.number]!, mixed);
        else mixed.copy(this.colours[part.body]!);
        if (part.body === trouble) mixed.copy(TROUBLE);
        if (part.body === this.highlighted) mixed.lerp(HOVERED, 0.5);
        mesh.setColorAt(part.instance, mixed);
      }
      if (mesh.instanceColor) mesh.instanceColor.needsUpdate = true;
    }
  }

  /** The lit body, or none. Returns whether that is new. */
  highlight(body: number | null): boolean {
    const changed = body !== this.highlighted;
    this.highlighted = body;
    return changed;
  }

  /** The first body a ray meets, and where; whether its shapes are drawn or not, for they lie inside what is. */
  pick(ray: THREE.Raycaster): { body: number; point: THREE.Vector3 } | null {
    for (const hit of ray.intersectObjects([...this.group.children, ...this.things.children], false)) {
      const part = this.bodyOf.get(hit.object)?.[hit.instanceId ?? -1];
      if (part) return { body: part.body, point: hit.point };
    }
    return null;
  }

  worldOf(body: number): THREE.Matrix4 {
    return new THREE.Matrix4().fromArray(this.worlds, 16 * body);
  }

  /** The box around all shapes at the start of the scene. */
  startBox(): THREE.Box3 {
    const starts = this.message.bodies.map((body) => matrixOf(body.start));
    return this.boxOf(null, (body) => starts[body]!);
  }

  /** The box around the shapes of a body, or of all, where they are now. */
  boxNow(body: number | null): THREE.Box3 {
    return this.boxOf(body, (body) => this.worldOf(body));
  }

  /** The box around each shape of the character where it is now, about its middle: a share of its size. */
  coresNow(share: number): THREE.Box3[] {
    const cores: THREE.Box3[] = [];
    const [local, middle, size] = [new THREE.Matrix4(), new THREE.Vector3(), new THREE.Vector3()];
    for (const { mesh, parts } of this.solids) {
      mesh.geometry.computeBoundingBox();
      for (const part of parts) {
        if (part.body >= this.message.bodies.length - this.message.thing_bodies) continue;
        local.fromArray(part.local).premultiply(this.worldOf(part.body));
        const box = mesh.geometry.boundingBox!.clone().applyMatrix4(local);
        box.getCenter(middle);
        cores.push(box.setFromCenterAndSize(middle, box.getSize(size).multiplyScalar(share)));
      }
    }
    return cores;
  }

  private boxOf(body: number | null, worldOf: (body: number) => THREE.Matrix4): THREE.Box3 {
    const box = new THREE.Box3();
    const one = new THREE.Box3();
    const local = new THREE.Matrix4();
    for (const { mesh, parts } of this.solids) {
      mesh.geometry.computeBoundingBox();
      for (const part of parts) {
        if (body === null ? part.body >= this.message.bodies.length - this.message.thing_bodies : part.body !== body) continue;
        local.fromArray(part.local).premultiply(worldOf(part.body));
        box.union(one.copy(mesh.geometry.boundingBox!).applyMatrix4(local));
      }
    }
    return box;
  }

  dispose(): void {
    for (const { mesh, ghost } of this.solids) {
      mesh.geometry.dispose();
      for (const m of [mesh, ghost]) {
        (m.material as THREE.Material).dispose();
        m.dispose();
      }
    }
  }
}

/** Calls `add` with each unit solid of a shape and its place on the body. */
function place(
  shape: Shape,
  units: { sphere: THREE.BufferGeometry; cuboid: THREE.BufferGeometry; cylinder: THREE.BufferGeometry },
  boxes: Map<string, THREE.BufferGeometry>,
  add: (geometry: THREE.BufferGeometry, local: THREE.Matrix4) => void,
): void {
  const sized = (x: number, y: number, z: number, along = 0) => {
    const base = matrixOf(shape.frame);
    return base.multiply(new THREE.Matrix4().makeTranslation(along, 0, 0)).scale(new THREE.Vector3(x, y, z));
  };
  switch (shape.shape) {
    case "sphere":
      return add(units.sphere, sized(shape.radius, shape.radius, shape.radius));
    case "cuboid": {
      const rounded = boxes.get(String(shape.size));
      return rounded ? add(rounded, sized(1, 1, 1)) : add(units.cuboid, sized(...shape.size));
    }
    case "cylinder":
      return add(units.cylinder, sized(shape.length, shape.radius, shape.radius));
    case "capsule": {
      const r = shape.radius;
      if (shape.length > 0) add(units.cylinder, sized(shape.length, r, r));
      for (const end of [-0.5, 0.5]) add(units.sphere, sized(r, r, r, end * shape.length));
      return;
    }
    case "hull":
      return add(new ConvexGeometry(shape.points.map((p) => new THREE.Vector3(...p))), matrixOf(shape.frame));
    case "mesh": {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.Float32BufferAttribute(shape.vertices.flat(), 3));
      geometry.setIndex(shape.triangles.flat());
      geometry.computeVertexNormals();
      return add(geometry, matrixOf(shape.frame));
    }
  }
}

/** Boxes with rounded edges by their size, unless there are too many sizes. */
function roundedBoxes(message: SceneMessage): Map<string, THREE.BufferGeometry> {
  const boxes = new Map<string, THREE.BufferGeometry>();
  for (const shape of message.bodies.slice(0, message.bodies.length - message.thing_bodies).flatMap((body) => body.shapes)) {
    if (shape.shape !== "cuboid" || boxes.has(String(shape.size))) continue;
    if (boxes.size === ROUNDED_SIZES) return new Map();
    boxes.set(String(shape.size), new RoundedBoxGeometry(...shape.size, 4, 0.42 * Math.min(...shape.size)));
  }
  return boxes;
}

export function matrixOf(frame: Frame3): THREE.Matrix4 {
  return new THREE.Matrix4().compose(
    new THREE.Vector3(...frame.position),
    new THREE.Quaternion(...frame.rotation),
    new THREE.Vector3(1, 1, 1),
  );
}

function ghostMaterial(): THREE.Material {
  return new THREE.MeshBasicMaterial({ color: 0x2f7fd0, transparent: true, opacity: 0.22, depthWrite: false, fog: false });
}

/** A limb keeps its colour; where the tree branches, each branch gets the next one. */
function limbColours(message: SceneMessage): THREE.Color[] {
  const children: number[][] = message.bodies.map(() => []);
  const rooted = new Set<number>();
  for (const joint of message.joints) {
    if (joint.parent === null) continue;
    children[joint.parent]!.push(joint.child);
    rooted.add(joint.child);
  }
  const shade = new Int32Array(message.bodies.length);
  const open = message.bodies.map((_, k) => k).filter((k) => !rooted.has(k));
  while (open.length > 0) {
    const body = open.pop()!;
    const next = children[body]!;
    next.forEach((child, k) => {
      shade[child] = next.length === 1 ? shade[body]! : (shade[body]! + k + 1) % PALETTE.length;
      open.push(child);
    });
  }
  return Array.from(shade, (k) => PALETTE[k]!);
}

/** The matrix of position and rotation, column by column. */
function writeRigid(pose: Float32Array, from: number, out: Float32Array, to: number): void {
  const x = pose[from + 3]!, y = pose[from + 4]!, z = pose[from + 5]!, w = pose[from + 6]!;
  out[to] = 1 - 2 * (y * y + z * z);
  out[to + 1] = 2 * (x * y + z * w);
  out[to + 2] = 2 * (x * z - y * w);
  out[to + 3] = 0;
  out[to + 4] = 2 * (x * y - z * w);
  out[to + 5] = 1 - 2 * (x * x + z * z);
  out[to + 6] = 2 * (y * z + x * w);
  out[to + 7] = 0;
  out[to + 8] = 2 * (x * z + y * w);
  out[to + 9] = 2 * (y * z - x * w);
  out[to + 10] = 1 - 2 * (x * x + y * y);
  out[to + 11] = 0;
  out[to + 12] = pose[from]!;
  out[to + 13] = pose[from + 1]!;
  out[to + 14] = pose[from + 2]!;
  out[to + 15] = 1;
}

/** out = a · b for affine matrices whose last row is 0, 0, 0, 1. */
function multiply(a: Float32Array, at: number, b: Float32Array, out: Float32Array, to: number): void {
  const a0 = a[at]!, a1 = a[at + 1]!, a2 = a[at + 2]!;
  const a4 = a[at + 4]!, a5 = a[at + 5]!, a6 = a[at + 6]!;
  const a8 = a[at + 8]!, a9 = a[at + 9]!, a10 = a[at + 10]!;
  for (let column = 0; column < 16; column += 4) {
    const x = b[column]!, y = b[column + 1]!, z = b[column + 2]!;
    out[to + column] = a0 * x + a4 * y + a8 * z;
    out[to + column + 1] = a1 * x + a5 * y + a9 * z;
    out[to + column + 2] = a2 * x + a6 * y + a10 * z;
  }
  out[to + 12]! += a[at + 12]!;
  out[to + 13]! += a[at + 13]!;
  out[to + 14]! += a[at + 14]!;
  out[to + 15] = 1;
}
