// Where the bones carry a soft skin: each vertex follows its bodies by weight, from the rest pose, with its displacement there (docs/protocol.md, Skin).

import type { SkinMap } from "./protocol";

export class Carrier {
  readonly vertices: number;
  /** Places of the vertices, then of the corners of the layer below them, three numbers each. */
  readonly nodes: Float32Array;
  /** Where the bones alone carry the vertices. */
  readonly alone: Float32Array;
  /** By body, from the rest pose to the world: rotation x, y, z, w, then the matrix by rows with its shift. */
  private readonly bones: Float32Array;
  /** By vertex: where the corners that it carries are in `inner`. */
  private readonly below: number[][];

  constructor(private readonly map: SkinMap) {
    this.vertices = map.rest.length / 3;
    this.nodes = new Float32Array(map.rest.length + map.inner.length);
    this.below = Array.from({ length: this.vertices }, () => []);
    map.follows.forEach((v, k) => this.below[v]!.push(3 * k));
    this.alone = new Float32Array(3 * this.vertices);
    this.bones = new Float32Array(16 * map.from_rest.length);
  }

  /** Carries everything to the poses of bodies; the layer below only when it is wanted. */
  carry(poses: Float32Array, displacements: Float32Array, inner: boolean): void {
    const { map, nodes, alone, vertices } = this;
    this.pose(poses);
    const m = new Float32Array(12);
    for (let v = 0; v < vertices; v++) {
      if (map.map === "linear") this.blend(v, m);
      else this.turn(v, m);
      const at = 3 * v;
      const [x, y, z] = [map.rest[at]!, map.rest[at + 1]!, map.rest[at + 2]!];
      put(m, x, y, z, alone, at);
      put(m, x + (displacements[at] ?? 0), y + (displacements[at + 1] ?? 0), z + (displacements[at + 2] ?? 0), nodes, at);
      if (!inner) continue;
      for (const k of this.below[v]!) {
        put(m, map.inner[k]!, map.inner[k + 1]!, map.inner[k + 2]!, nodes, 3 * vertices + k);
      }
    }
  }

  private pose(poses: Float32Array): void {
    this.map.from_rest.forEach(({ position, rotation }, k) => {
      const [ax, ay, az, aw] = [poses[7 * k + 3]!, poses[7 * k + 4]!, poses[7 * k + 5]!, poses[7 * k + 6]!];
      const [bx, by, bz, bw] = rotation;
      const bone = this.bones.subarray(16 * k, 16 * k + 16);
      bone[0] = aw * bx + ax * bw + ay * bz - az * by;
      bone[1] = aw * by - ax * bz + ay * bw + az * bx;
      bone[2] = aw * bz + ax * by - ay * bx + az * bw;
      bone[3] = aw * bw - ax * bx - ay * by - az * bz;
      const own = new Float32Array(12);
      matrix(ax, ay, az, aw, own);
      own[3] = poses[7 * k]!;
      own[7] = poses[7 * k + 1]!;
      own[11] = poses[7 * k + 2]!;
      matrix(bone[0], bone[1], bone[2], bone[3], bone.subarray(4));
      for (let r = 0; r < 3; r++) {
        bone[4 + 4 * r + 3] = own[4 * r]! * position[0] + own[4 * r + 1]! * position[1] + own[4 * r + 2]! * position[2] + own[4 * r + 3]!;
      }
    });
  }

  /** The linear blend of a vertex: Σ w T. */
  private blend(v: number, m: Float32Array): void {
    const { map, bones } = this;
    m.fill(0);
    for (let k = 4 * v; k < 4 * v + 4; k++) {
      const weight = map.weights[k]!;
      if (weight === 0) continue;
      const bone = 16 * map.bodies[k]! + 4;
      for (let i = 0; i < 12; i++) m[i]! += weight * bones[bone + i]!;
    }
  }

  /** The turn of a vertex about its centre p: R u + Σ w T p − R p. */
  private turn(v: number, m: Float32Array): void {
    const { map, bones } = this;
    let [x, y, z, w] = [0, 0, 0, 0];
    let [cx, cy, cz] = [0, 0, 0];
    const [px, py, pz] = [map.centres[3 * v]!, map.centres[3 * v + 1]!, map.centres[3 * v + 2]!];
    const first = 16 * map.bodies[4 * v]!;
    for (let k = 4 * v; k < 4 * v + 4; k++) {
      const weight = map.weights[k]!;
      if (weight === 0) continue;
      const b = 16 * map.bodies[k]!;
      const side = bones[b]! * bones[first]! + bones[b + 1]! * bones[first + 1]! + bones[b + 2]! * bones[first + 2]! + bones[b + 3]! * bones[first + 3]!;
      const share = side < 0 ? -weight : weight;
      x += share * bones[b]!;
      y += share * bones[b + 1]!;
      z += share * bones[b + 2]!;
      w += share * bones[b + 3]!;
      cx += weight * (bones[b + 4]! * px + bones[b + 5]! * py + bones[b + 6]! * pz + bones[b + 7]!);
      cy += weight * (bones[b + 8]! * px + bones[b + 9]! * py + bones[b + 10]! * pz + bones[b + 11]!);
      cz += weight * (bones[b + 12]! * px + bones[b + 13]! * py + bones[b + 14]! * pz + bones[b + 15]!);
    }
    const size = Math.hypot(x, y, z, w);
    if (size > 0) matrix(x / size, y / size, z / size, w / size, m);
    else matrix(0, 0, 0, 1, m);
    m[3] = cx - m[0]! * px - m[1]! * py - m[2]! * pz;
    m[7] = cy - m[4]! * px - m[5]! * py - m[6]! * pz;
    m[11] = cz - m[8]! * px - m[9]! * py - m[10]! * pz;
  }
}

/** Writes m (x, y, z), m three rows of four. */
function put(m: Float32Array, x: number, y: number, z: number, out: Float32Array, at: number): void {
  out[at] = m[0]! * x + m[1]! * y + m[2]! * z + m[3]!;
  out[at + 1] = m[4]! * x + m[5]! * y + m[6]! * z + m[7]!;
  out[at + 2] = m[8]! * x + m[9]! * y + m[10]! * z + m[11]!;
}

/** The matrix of a rotation, three rows of four; the last of each is not written. */
function matrix(x: number, y: number, z: number, w: number, out: Float32Array): void {
  out[0] = 1 - 2 * (y * y + z * z);
  out[1] = 2 * (x * y - z * w);
  out[2] = 2 * (x * z + y * w);
  out[4] = 2 * (x * y + z * w);
  out[5] = 1 - 2 * (x * x + z * z);
  out[6] = 2 * (y * z - x * w);
  out[8] = 2 * (x * z - y * w);
  out[9] = 2 * (y * z + x * w);
  out[10] = 1 - 2 * (x * x + y * y);
}
