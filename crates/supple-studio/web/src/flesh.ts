// Flesh: a smooth surface that follows its cage of tetrahedra; the cage as wires, its nodes as balls, colours by strain.

import * as THREE from "three";
import type { Heat } from "./heat";
import type { FleshMessage } from "./protocol";

const FREE = new THREE.Color(0x4f86c6);
const FIXED = new THREE.Color(0xd9822b);
/** Balls of nodes of the mean mass are this share of an edge in radius. */
const BALL = 0.06;

export class FleshView {
  readonly group = new THREE.Group();
  readonly surface: THREE.Mesh<THREE.BufferGeometry, THREE.MeshStandardMaterial>;
  private readonly wires: THREE.LineSegments<THREE.BufferGeometry, THREE.LineBasicMaterial>;
  private readonly balls: THREE.InstancedMesh;
  private readonly positions: Float32Array;
  private readonly own: Float32Array;
  private readonly colours: Float32Array;
  /** Pairs of nodes, and an element of each. */
  private readonly edges: Uint32Array;
  private readonly edgeElement: Uint32Array;
  /** Inverse edges at the start of each element, nine numbers by rows, and how strained it is. */
  private readonly inverse: Float32Array;
  private readonly strains: Float32Array;
  private readonly radii: Float32Array;

  constructor(private readonly message: FleshMessage) {
    const vertices = message.tets.length;
    this.positions = new Float32Array(3 * vertices);
    this.colours = new Float32Array(3 * vertices).fill(0.7);
    if (message.colours.length === 3 * vertices) this.colours.set(message.colours);
    this.own = this.colours.slice();
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(this.positions, 3).setUsage(THREE.DynamicDrawUsage));
    geometry.setAttribute("color", new THREE.BufferAttribute(this.colours, 3).setUsage(THREE.DynamicDrawUsage));
    geometry.setIndex(message.triangles);
    this.surface = new THREE.Mesh(geometry, new THREE.MeshStandardMaterial({ vertexColors: true, roughness: 0.55 }));
    // It moves: rays test every triangle.
    geometry.boundingSphere = new THREE.Sphere(new THREE.Vector3(), Infinity);
    this.surface.castShadow = this.surface.receiveShadow = true;

    const pairs = new Map<number, number>();
    const nodes = message.start.length / 3;
    const elements = message.elements.length / 4;
    for (let e = 0; e < elements; e++) {
      for (let a = 0; a < 4; a++) {
        for (let b = a + 1; b < 4; b++) {
          const [i, j] = [message.elements[4 * e + a]!, message.elements[4 * e + b]!];
          const key = Math.min(i, j) * nodes + Math.max(i, j);
          if (!pairs.has(key)) pairs.set(key, e);
        }
      }
    }
    this.edges = Uint32Array.from([...pairs.keys()].flatMap((key) => [Math.floor(key / nodes), key % nodes]));
    this.edgeElement = Uint32Array.from(pairs.values());
    const lines = new THREE.BufferGeometry();
    const ends = this.edges.length;
    lines.setAttribute("position", new THREE.BufferAttribute(new Float32Array(3 * ends), 3).setUsage(THREE.DynamicDrawUsage));
    lines.setAttribute("color", new THREE.BufferAttribute(new Float32Array(3 * ends).fill(0.25), 3).setUsage(THREE.DynamicDrawUsage));
    this.wires = new THREE.LineSegments(lines, new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, opacity: 0.8 }));

    this.inverse = new Float32Array(9 * elements);
    this.strains = new Float32Array(elements);
    const edge = new THREE.Matrix3();
    for (let e = 0; e < elements; e++) {
      edge.set(...edgesOf(message, message.start, e)).invert();
      // three.js keeps columns
      const c = edge.elements;
      this.inverse.set([c[0], c[3], c[6], c[1], c[4], c[7], c[2], c[5], c[8]], 9 * e);
    }

    const mean = message.masses.reduce((sum, m) => sum + m, 0) / Math.max(nodes, 1);
    const length = meanLength(message.start, this.edges);
    this.radii = Float32Array.from(message.masses, (mass) => BALL * length * Math.cbrt(mass / mean));
    this.balls = new THREE.InstancedMesh(new THREE.SphereGeometry(1, 12, 8), new THREE.MeshStandardMaterial({ roughness: 0.6 }), nodes);
    for (let k = 0; k < nodes; k++) this.balls.setColorAt(k, k < message.free ? FREE : FIXED);
    for (const drawn of [this.surface, this.wires, this.balls]) drawn.frustumCulled = false;
    this.group.add(this.surface, this.wires, this.balls);
  }

  show(layers: { skin: boolean; cage: boolean }): void {
    this.surface.visible = layers.skin;
    this.wires.visible = this.balls.visible = layers.cage;
    // The cage lies around the surface: seen through it, both can be told.
    const { material } = this.surface;
    material.transparent = layers.cage;
    material.opacity = layers.cage ? 0.55 : 1;
    material.depthWrite = !layers.cage;
    material.needsUpdate = true;
  }

  /** Moves everything to the places of the nodes, three numbers each. Colours tell the strain. */
  move(nodes: Float32Array, heat: Heat | null): void {
    const { message } = this;
    if (nodes.length !== message.start.length) return;
    for (let v = 0; v < message.tets.length; v++) {
      let [x, y, z] = [0, 0, 0];
      for (let k = 0; k < 4; k++) {
        const at = 3 * message.elements[4 * message.tets[v]! + k]!;
        const weight = message.weights[4 * v + k]!;
        x += weight * nodes[at]!;
        y += weight * nodes[at + 1]!;
        z += weight * nodes[at + 2]!;
      }
      this.positions[3 * v] = x;
      this.positions[3 * v + 1] = y;
      this.positions[3 * v + 2] = z;
    }
    if (heat) this.strain(nodes);
    this.paint(heat);
    const { geometry } = this.surface;
    geometry.attributes.position!.needsUpdate = true;
    geometry.computeVertexNormals();
    if (!this.wires.visible) return;
    const ends = this.wires.geometry.attributes.position as THREE.BufferAttribute;
    this.edges.forEach((node, k) => ends.setXYZ(k, nodes[3 * node]!, nodes[3 * node + 1]!, nodes[3 * node + 2]!));
    ends.needsUpdate = true;
    const place = new THREE.Matrix4();
    for (let k = 0; k < this.radii.length; k++) {
      const r = this.radii[k]!;
      place.makeScale(r, r, r).setPosition(nodes[3 * k]!, nodes[3 * k + 1]!, nodes[3 * k + 2]!);
      this.balls.setMatrixAt(k, place);
    }
    this.balls.instanceMatrix.needsUpdate = true;
  }

  /** Colours by a number of each vertex. */
  colourBy(values: ArrayLike<number>, heat: Heat): void {
    const colour = new THREE.Color();
    for (let v = 0; v < values.length; v++) heat.colour(values[v]!, colour).toArray(this.colours, 3 * v);
    this.surface.geometry.attributes.color!.needsUpdate = true;
  }

  /** |FᵀF − 1|/2 of each element [%]: the size of its strain, which turning does not change. */
  private strain(nodes: ArrayLike<number>): void {
    for (let e = 0; e < this.strains.length; e++) {
      const d = edgesOf(this.message, nodes, e);
      const f = new Array<number>(9).fill(0);
      for (let r = 0; r < 3; r++) {
        for (let c = 0; c < 3; c++) {
          for (let k = 0; k < 3; k++) f[3 * r + c]! += d[3 * r + k]! * this.inverse[9 * e + 3 * k + c]!;
        }
      }
      let sum = 0;
      for (let a = 0; a < 3; a++) {
        for (let b = 0; b < 3; b++) {
          let c = a === b ? -1 : 0;
          for (let r = 0; r < 3; r++) c += f[3 * r + a]! * f[3 * r + b]!;
          sum += 0.25 * c * c;
        }
      }
      this.strains[e] = 100 * Math.sqrt(sum);
    }
  }

  /** Colours of strain, or the flesh's own. */
  private paint(heat: Heat | null): void {
    const colour = new THREE.Color();
    const ends = this.wires.geometry.attributes.color as THREE.BufferAttribute;
    if (!heat) {
      this.colours.set(this.own);
      (ends.array as Float32Array).fill(0.25);
    } else {
      this.message.tets.forEach((tet, v) => heat.colour(this.strains[tet]!, colour).toArray(this.colours, 3 * v));
      this.edgeElement.forEach((e, k) => {
        heat.colour(this.strains[e]!, colour);
        for (const end of [2 * k, 2 * k + 1]) ends.setXYZ(end, colour.r, colour.g, colour.b);
      });
    }
    this.surface.geometry.attributes.color!.needsUpdate = true;
    ends.needsUpdate = true;
  }

  /** For tests: vertices, edges and nodes drawn, the largest strain [%], the colour of the first vertex, and a sum of all colours that changes with any. */
  get shown(): { vertices: number; edges: number; nodes: number; strain: number; lowest: number; colour: number[]; colours: number } {
    const cage = this.wires.visible;
    let lowest = Infinity;
    for (let k = 1; k < this.positions.length; k += 3) lowest = Math.min(lowest, this.positions[k]!);
    return {
      vertices: this.surface.visible ? this.positions.length / 3 : 0,
      edges: cage ? this.edgeElement.length : 0,
      nodes: cage ? this.radii.length : 0,
      strain: this.strains.reduce((a, b) => Math.max(a, b), 0),
      lowest,
      colour: [...this.colours.subarray(0, 3)],
      colours: this.colours.reduce((sum, c, k) => sum + c * ((k % 97) + 1), 0),
    };
  }

  /** The box of the surface at the start. */
  startBox(): THREE.Box3 {
    this.move(Float32Array.from(this.message.start), null);
    return new THREE.Box3().setFromArray(this.positions);
  }

  /** The box of the surface as it is drawn. */
  boxNow(): THREE.Box3 {
    return new THREE.Box3().setFromArray(this.positions);
  }

  dispose(): void {
    for (const drawn of [this.surface, this.wires, this.balls]) {
      drawn.geometry.dispose();
      (drawn.material as THREE.Material).dispose();
    }
  }
}

/** The edges of an element from its first node, as columns; nine numbers by rows. */
function edgesOf(message: FleshMessage, nodes: ArrayLike<number>, element: number): [number, number, number, number, number, number, number, number, number] {
  const at = (k: number, axis: number) => nodes[3 * message.elements[4 * element + k]! + axis]!;
  const d = (k: number, axis: number) => at(k, axis) - at(0, axis);
  return [d(1, 0), d(2, 0), d(3, 0), d(1, 1), d(2, 1), d(3, 1), d(1, 2), d(2, 2), d(3, 2)];
}

function meanLength(nodes: number[], edges: Uint32Array): number {
  let sum = 0;
  for (let k = 0; k < edges.length; k += 2) {
    const [i, j] = [3 * edges[k]!, 3 * edges[k + 1]!];
    sum += Math.hypot(nodes[i]! - nodes[j]!, nodes[i + 1]! - nodes[j + 1]!, nodes[i + 2]! - nodes[j + 2]!);
  }
  return (2 * sum) / Math.max(edges.length, 1);
}
