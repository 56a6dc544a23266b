// Meshes that bodies carry: each vertex goes where its four bodies take it, by weight.

import * as THREE from "three";
import type { SceneMessage, SkinMessage } from "./protocol";

export class Skin {
  readonly group = new THREE.Group();
  private readonly parts: { message: SkinMessage; positions: THREE.BufferAttribute }[] = [];
  /** body_from_world at rest, sixteen numbers a body. */
  private readonly fromRest: Float32Array;
  /** world_now · body_from_world at rest. */
  private readonly moved: Float32Array;

  constructor(message: SceneMessage) {
    const count = message.bodies.length;
    this.fromRest = new Float32Array(16 * count);
    this.moved = new Float32Array(16 * count);
    const one = new THREE.Vector3(1, 1, 1);
    message.bodies.forEach(({ rest }, k) => {
      const world = new THREE.Matrix4().compose(new THREE.Vector3(...rest.position), new THREE.Quaternion(...rest.rotation), one);
      this.fromRest.set(world.invert().elements, 16 * k);
    });
    for (const mesh of message.meshes) {
      const geometry = new THREE.BufferGeometry();
      const positions = new THREE.BufferAttribute(new Float32Array(mesh.vertices), 3).setUsage(THREE.DynamicDrawUsage);
      geometry.setAttribute("position", positions);
      geometry.setIndex(mesh.triangles);
      const colour = new THREE.Color().setRGB(...mesh.colour);
      // Normals come from the triangles as they are drawn: nothing to move along.
      const material = new THREE.MeshStandardMaterial({ color: colour, roughness: 0.75, flatShading: true, side: THREE.DoubleSide });
      const drawn = new THREE.Mesh(geometry, material);
      drawn.frustumCulled = false;
      drawn.castShadow = drawn.receiveShadow = true;
      this.group.add(drawn);
      this.parts.push({ message: mesh, positions });
    }
  }

  get present(): boolean {
    return this.parts.length > 0;
  }

  /** Lowest point and height of what is drawn, and how much longer than in the file its edges are, at most; edges below a part of the height are left out. */
  measure(): { lowest: number; height: number; stretch: number } {
    let [lowest, highest, stretch] = [Infinity, -Infinity, 1];
    for (const { positions } of this.parts) {
      for (let v = 0; v < positions.count; v++) {
        lowest = Math.min(lowest, positions.getY(v));
        highest = Math.max(highest, positions.getY(v));
      }
    }
    const [now, then] = [new THREE.Vector3(), new THREE.Vector3()];
    for (const { message, positions } of this.parts) {
      const { vertices, triangles } = message;
      const file = (v: number, into: THREE.Vector3) => into.set(vertices[3 * v]!, vertices[3 * v + 1]!, vertices[3 * v + 2]!);
      const [one, other] = [new THREE.Vector3(), new THREE.Vector3()];
      for (let t = 0; t < triangles.length; t++) {
        const [a, b] = [triangles[t]!, triangles[t % 3 === 2 ? t - 2 : t + 1]!];
        const before = file(a, one).distanceTo(file(b, other));
        if (before < 0.01 * (highest - lowest)) continue;
        now.fromBufferAttribute(positions, a);
        then.fromBufferAttribute(positions, b);
        stretch = Math.max(stretch, now.distanceTo(then) / before);
      }
    }
    return { lowest, height: highest - lowest, stretch };
  }

  /** Moves every vertex; `worlds` holds world_from_body, sixteen numbers a body. */
  move(worlds: Float32Array): void {
    if (!this.group.visible) return;
    const { moved, fromRest } = this;
    for (let at = 0; at < moved.length; at += 16) multiply(worlds, fromRest, moved, at);
    for (const { message, positions } of this.parts) {
      const { vertices, bodies, weights } = message;
      const out = positions.array as Float32Array;
      for (let v = 0; v < vertices.length / 3; v++) {
        const [x, y, z] = [vertices[3 * v]!, vertices[3 * v + 1]!, vertices[3 * v + 2]!];
        let [px, py, pz] = [0, 0, 0];
        for (let k = 4 * v; k < 4 * v + 4; k++) {
          const weight = weights[k]!;
          if (weight === 0) continue;
          const m = 16 * bodies[k]!;
          px += weight * (moved[m]! * x + moved[m + 4]! * y + moved[m + 8]! * z + moved[m + 12]!);
          py += weight * (moved[m + 1]! * x + moved[m + 5]! * y + moved[m + 9]! * z + moved[m + 13]!);
          pz += weight * (moved[m + 2]! * x + moved[m + 6]! * y + moved[m + 10]! * z + moved[m + 14]!);
        }
        out[3 * v] = px;
        out[3 * v + 1] = py;
        out[3 * v + 2] = pz;
      }
      positions.needsUpdate = true;
    }
  }

  dispose(): void {
    for (const mesh of this.group.children as THREE.Mesh[]) {
      mesh.geometry.dispose();
      (mesh.material as THREE.Material).dispose();
    }
  }
}

/** out = a · b for the matrices at `at`, stored by columns. */
function multiply(a: Float32Array, b: Float32Array, out: Float32Array, at: number): void {
  for (let column = 0; column < 4; column++) {
    for (let row = 0; row < 4; row++) {
      let sum = 0;
      for (let k = 0; k < 4; k++) sum += a[at + 4 * k + row]! * b[at + 4 * column + k]!;
      out[at + 4 * column + row] = sum;
    }
  }
}
