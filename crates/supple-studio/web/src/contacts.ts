// What touches: obstacles where they stand, and at each contact that pushes its friction cone with the force in it.

import * as THREE from "three";
import { ConvexGeometry } from "three/addons/geometries/ConvexGeometry.js";
import { matrixOf } from "./figure";
import type { MovingFrame, Obstacle, SceneMessage } from "./protocol";

const COLOUR = 0xb9b4ab;

/** The obstacles of a scene; a level half-space is the ground of the stage and not drawn again. */
export class Obstacles {
  readonly group = new THREE.Group();
  /** By obstacle; null where none is drawn. */
  private readonly meshes: (THREE.Mesh | null)[] = [];
  private readonly material = new THREE.MeshStandardMaterial({ color: COLOUR, roughness: 0.9, side: THREE.DoubleSide });

  constructor(message: SceneMessage, reach: number) {
    for (const obstacle of message.obstacles) {
      const geometry = solid(obstacle, reach);
      const mesh = geometry && new THREE.Mesh(geometry, this.material);
      this.meshes.push(mesh);
      if (!mesh) continue;
      mesh.applyMatrix4(matrixOf(obstacle.frame));
      mesh.castShadow = obstacle.shape !== "half_space";
      mesh.receiveShadow = true;
      this.group.add(mesh);
    }
  }

  /** Where an obstacle is drawn. */
  placeOf(obstacle: number): number[] | null {
    return this.meshes[obstacle]?.position.toArray() ?? null;
  }

  /** Puts those that are moved where a frame has them. */
  move(frame: MovingFrame): void {
    for (const { obstacle, pose } of frame.obstacles) {
      const mesh = this.meshes[obstacle];
      mesh?.position.fromArray(pose);
      mesh?.quaternion.fromArray(pose, 3);
    }
  }

  /** The box of the character with the solids around it, as far as a length of the character away. */
  around(box: THREE.Box3): THREE.Box3 {
    const near = box.clone().expandByScalar(1.2 * box.getSize(new THREE.Vector3()).length());
    const whole = box.clone();
    for (const mesh of this.group.children.filter((mesh) => mesh.castShadow)) {
      const part = new THREE.Box3().setFromObject(mesh).intersect(near);
      if (!part.isEmpty()) whole.union(part);
    }
    return whole;
  }

  dispose(): void {
    for (const mesh of this.group.children as THREE.Mesh[]) mesh.geometry.dispose();
    this.material.dispose();
  }
}

/** The height of the first level half-space, or null. */
export function floorOf(message: SceneMessage): number | null {
  const floor = message.obstacles.find((o) => o.shape === "half_space" && isLevel(o));
  return floor ? floor.frame.position[1] : null;
}

function isLevel(obstacle: Obstacle): boolean {
  return new THREE.Vector3(0, 1, 0).applyQuaternion(new THREE.Quaternion(...obstacle.frame.rotation)).y > 1 - 1e-9;
}

function solid(obstacle: Obstacle, reach: number): THREE.BufferGeometry | null {
  switch (obstacle.shape) {
    case "half_space":
      return isLevel(obstacle) ? null : new THREE.PlaneGeometry(8 * reach, 8 * reach).rotateX(-Math.PI / 2);
    case "sphere":
      return new THREE.SphereGeometry(obstacle.radius, 32, 20);
    case "cuboid":
      return new THREE.BoxGeometry(...obstacle.size);
    case "cylinder":
      return new THREE.CylinderGeometry(obstacle.radius, obstacle.radius, obstacle.length, 32).rotateZ(-Math.PI / 2);
    case "capsule":
      return new THREE.CapsuleGeometry(obstacle.radius, obstacle.length, 8, 24).rotateZ(-Math.PI / 2);
    case "hull":
      return new ConvexGeometry(obstacle.points.map((p) => new THREE.Vector3(...p)));
    case "mesh": {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.Float32BufferAttribute(obstacle.vertices.flat(), 3));
      geometry.setIndex(obstacle.triangles.flat());
      geometry.computeVertexNormals();
      return geometry;
    }
  }
}

const MOST = 2048;
/** Lengths of cones, in radii of the character: none is longer than the first, and even the weakest push is seen. */
const [LONGEST, SHORTEST] = [0.25, 0.02];
const [STICKS, SLIDES] = [new THREE.Color(0x2e8b57), new THREE.Color(0xd1495b)];
/** A force at this share of the cone's edge slides. */
const EDGE = 0.999;

/** Friction cones: apex at the contact, axis along the normal, as wide as friction allows; a line within is the force. Green sticks, red slides. */
export class Cones {
  readonly group = new THREE.Group();
  private readonly cones: THREE.InstancedMesh;
  private readonly lines: THREE.LineSegments;
  private readonly ends = new Float32Array(6 * MOST);
  /** Contacts shown, and how many of them slide. */
  shown = { count: 0, sliding: 0 };

  constructor() {
    // Apex at the origin, opening along Y to height 1 and radius 1.
    const cone = new THREE.ConeGeometry(1, 1, 20, 1, true).rotateX(Math.PI).translate(0, 0.5, 0);
    const look = { transparent: true, depthWrite: false, fog: false };
    const material = new THREE.MeshBasicMaterial({ ...look, opacity: 0.35, side: THREE.DoubleSide });
    this.cones = new THREE.InstancedMesh(cone, material, MOST);
    const geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(this.ends, 3));
    this.lines = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ ...look, color: 0x1f2937, depthTest: false }));
    for (const object of [this.cones, this.lines]) {
      object.frustumCulled = false;
      object.renderOrder = 2;
      this.group.add(object);
    }
    this.cones.count = 0;
  }

  /** Shows the contacts of a frame; `unit` is the force drawn as long as the character's radius. */
  show(frame: MovingFrame, radius: number, unit: number): void {
    const up = new THREE.Vector3(0, 1, 0);
    const [turn, matrix, size] = [new THREE.Quaternion(), new THREE.Matrix4(), new THREE.Vector3()];
    const pushes = frame.pushes.slice(0, MOST);
    let sliding = 0;
    pushes.forEach((push, k) => {
      const at = new THREE.Vector3().fromArray(push.point);
      const normal = new THREE.Vector3().fromArray(push.normal);
      const force = new THREE.Vector3().fromArray(push.force);
      const along = Math.max(force.dot(normal), 0);
      const length = radius * Math.max(LONGEST * Math.tanh(along / unit / LONGEST), SHORTEST);
      const wide = length * Math.max(push.friction, 0.02);
      turn.setFromUnitVectors(up, normal);
      this.cones.setMatrixAt(k, matrix.compose(at, turn, size.set(wide, length, wide)));
      const aside = force.clone().addScaledVector(normal, -along).length();
      const slides = aside >= EDGE * push.friction * along;
      if (slides) sliding++;
      this.cones.setColorAt(k, slides ? SLIDES : STICKS);
      at.toArray(this.ends, 6 * k);
      at.addScaledVector(force, along > 0 ? length / along : 0).toArray(this.ends, 6 * k + 3);
    });
    this.cones.count = pushes.length;
    this.cones.instanceMatrix.needsUpdate = true;
    if (this.cones.instanceColor) this.cones.instanceColor.needsUpdate = true;
    this.lines.geometry.setDrawRange(0, 2 * pushes.length);
    this.lines.geometry.getAttribute("position").needsUpdate = true;
    this.shown = { count: pushes.length, sliding };
  }

  dispose(): void {
    this.cones.geometry.dispose();
    (this.cones.material as THREE.Material).dispose();
    this.cones.dispose();
    this.lines.geometry.dispose();
    (this.lines.material as THREE.Material).dispose();
  }
}
