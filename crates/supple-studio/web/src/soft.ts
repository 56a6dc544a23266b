// Soft skin beyond its surface, which flesh.ts draws: how far it is displaced and what presses on it, proxies and tested triangles, balls and grabs of
// hands, and the same character once more with its skin carried by the bones alone [Galoppo 2007, fig. 3].

import * as THREE from "three";
import { Carrier } from "./carry";
import type { FleshMessage, MovingFrame, SkinMap } from "./protocol";

const [TESTED, PRUNED, BALL, BAND] = [0xe8862e, 0x5f7f9f, 0xd1495b, 0xd1495b];
const MOST_HANDS = 64;

/** Numbers of vertices that colours may show. */
export type VertexNumber = "displacement" | "pressure";

export interface SoftLayers {
  proxies: boolean;
  tested: boolean;
  twin: boolean;
}

export class SoftView {
  readonly group = new THREE.Group();
  readonly carrier: Carrier;
  /** How deep the layer is [m]: a typical length. */
  readonly depth: number;
  /** The character beside itself, its skin carried by bones alone. */
  readonly twin = new THREE.Group();
  private readonly values: Float32Array;
  private readonly areas: Float32Array;
  private readonly proxies: { body: number; mesh: THREE.Mesh<THREE.BufferGeometry, THREE.MeshBasicMaterial>; wires: THREE.LineSegments }[] = [];
  private readonly tested: THREE.Mesh<THREE.BufferGeometry, THREE.MeshBasicMaterial>;
  private readonly isTested: Uint8Array;
  private readonly balls: THREE.InstancedMesh;
  private readonly bands: THREE.LineSegments;
  private readonly carried: THREE.Mesh<THREE.BufferGeometry, THREE.MeshStandardMaterial>;
  private readonly copies: [from: THREE.InstancedMesh, to: THREE.InstancedMesh][] = [];
  private readonly beside: [from: THREE.Object3D, to: THREE.Object3D][] = [];
  private testedCount = 0;
  private largest = 0;
  private most = 0;

  constructor(
    private readonly map: SkinMap,
    private readonly flesh: FleshMessage,
    private readonly surface: THREE.BufferGeometry,
  ) {
    this.carrier = new Carrier(map);
    const n = this.carrier.vertices;
    this.values = new Float32Array(n);
    this.areas = areas(map.rest, flesh.triangles);
    let deep = 0;
    map.follows.forEach((v, i) => {
      const [a, b] = [3 * v, 3 * i];
      deep += Math.hypot(map.rest[a]! - map.inner[b]!, map.rest[a + 1]! - map.inner[b + 1]!, map.rest[a + 2]! - map.inner[b + 2]!);
    });
    this.depth = deep / Math.max(map.follows.length, 1);

    for (const { body, points, triangles } of map.proxies) {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.Float32BufferAttribute(points.flat(), 3));
      geometry.setIndex(triangles.flat());
      const look = { color: PRUNED, transparent: true, depthWrite: false };
      const mesh = new THREE.Mesh(geometry, new THREE.MeshBasicMaterial({ ...look, opacity: 0.12, side: THREE.DoubleSide }));
      const wires = new THREE.LineSegments(new THREE.EdgesGeometry(geometry, 1), new THREE.LineBasicMaterial({ ...look, opacity: 0.75 }));
      for (const drawn of [mesh, wires]) {
        drawn.matrixAutoUpdate = false;
        drawn.frustumCulled = false;
        drawn.renderOrder = 2;
        drawn.visible = false;
        this.group.add(drawn);
      }
      this.proxies.push({ body, mesh, wires });
    }

    // The tested triangles lie on the surface: the same vertices, some of the triangles, drawn in front.
    const some = new THREE.BufferGeometry();
    some.setAttribute("position", surface.getAttribute("position"));
    some.setIndex(new THREE.BufferAttribute(new Uint32Array(flesh.triangles.length), 1).setUsage(THREE.DynamicDrawUsage));
    some.setDrawRange(0, 0);
    this.isTested = new Uint8Array(n);
    const front = { polygonOffset: true, polygonOffsetFactor: -2, polygonOffsetUnits: -4 };
    this.tested = new THREE.Mesh(some, new THREE.MeshBasicMaterial({ color: TESTED, wireframe: true, transparent: true, opacity: 0.85, ...front }));

    this.balls = new THREE.InstancedMesh(new THREE.SphereGeometry(1, 32, 20), new THREE.MeshStandardMaterial({ color: BALL, roughness: 0.35 }), MOST_HANDS);
    this.balls.castShadow = true;
    const ends = new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(new Float32Array(6 * MOST_HANDS), 3));
    this.bands = new THREE.LineSegments(ends, new THREE.LineBasicMaterial({ color: BAND, depthTest: false, transparent: true }));
    this.bands.renderOrder = 3;

    const alone = new THREE.BufferGeometry();
    alone.setAttribute("position", new THREE.BufferAttribute(this.carrier.alone, 3).setUsage(THREE.DynamicDrawUsage));
    const colours = flesh.colours.length === 3 * n ? Float32Array.from(flesh.colours) : new Float32Array(3 * n).fill(0.7);
    alone.setAttribute("color", new THREE.BufferAttribute(colours, 3));
    alone.setIndex(flesh.triangles);
    this.carried = new THREE.Mesh(alone, new THREE.MeshStandardMaterial({ vertexColors: true, roughness: 0.55 }));
    this.carried.castShadow = this.carried.receiveShadow = true;
    this.twin.add(this.carried);
    this.twin.visible = false;
    for (const drawn of [this.tested, this.balls, this.bands, this.carried]) drawn.frustumCulled = false;
    this.group.add(this.tested, this.balls, this.bands, this.twin);
    this.balls.count = 0;
  }

  /** What stands or moves around the skin is drawn beside the twin too: it shares places and colours with what it copies. */
  accompany(instanced: THREE.Object3D[], standing: THREE.Object3D[]): void {
    for (const mesh of [...instanced, this.balls] as THREE.InstancedMesh[]) {
      const copy = new THREE.InstancedMesh(mesh.geometry, mesh.material, mesh.instanceMatrix.count);
      copy.instanceMatrix = mesh.instanceMatrix;
      copy.castShadow = true;
      copy.frustumCulled = false;
      this.copies.push([mesh, copy]);
      this.twin.add(copy);
    }
    for (const object of standing) {
      const copy = object.clone();
      this.beside.push([object, copy]);
      this.twin.add(copy);
    }
  }

  show(layers: SoftLayers): void {
    for (const { mesh, wires } of this.proxies) mesh.visible = wires.visible = layers.proxies;
    this.tested.visible = layers.tested;
    this.twin.visible = layers.twin;
  }

  /** Carries the skin to where a frame has it; `inner` when the layer below is looked at. Returns the places of its nodes. */
  carry(frame: MovingFrame, inner: boolean): Float32Array {
    this.carrier.carry(frame.poses, frame.skin?.displacements ?? new Float32Array(), inner);
    return this.carrier.nodes;
  }

  /** Shows the rest, once the surface is where the frame has it; `shapes` tells whether bodies are drawn. */
  move(frame: MovingFrame, worlds: Float32Array, shapes: boolean): void {
    const touched = frame.skin;
    if (!touched) return;
    const looked = new Set(touched.tested);
    for (const { body, mesh, wires } of this.proxies) {
      for (const drawn of [mesh, wires]) {
        drawn.matrix.fromArray(worlds, 16 * body);
        drawn.matrixWorldNeedsUpdate = true;
        (drawn.material as THREE.MeshBasicMaterial).color.set(looked.has(body) ? TESTED : PRUNED);
      }
    }
    this.moveTested(looked);
    this.moveHands(touched);
    if (!this.twin.visible) return;
    const { geometry } = this.carried;
    geometry.attributes.position!.needsUpdate = true;
    geometry.computeVertexNormals();
    for (const [from, to] of this.beside) {
      to.position.copy(from.position);
      to.quaternion.copy(from.quaternion);
    }
    for (const [from, to] of this.copies) {
      to.visible = from === this.balls || shapes;
      to.count = from.count;
      to.instanceColor = from.instanceColor;
    }
  }

  /** How far each vertex is displaced [m], or the pressure on it [Pa]. */
  numbers(frame: MovingFrame, of: VertexNumber): Float32Array {
    const { values } = this;
    values.fill(0);
    if (!frame.skin) return values;
    if (of === "displacement") {
      const d = frame.skin.displacements;
      for (let v = 0; v < values.length; v++) values[v] = Math.hypot(d[3 * v]!, d[3 * v + 1]!, d[3 * v + 2]!);
      return values;
    }
    // The force against the surface, on the share of the triangles around the vertex.
    const normals = this.surface.getAttribute("normal");
    for (const { vertex, force } of frame.skin.pressures) {
      const along = force[0]! * normals.getX(vertex) + force[1]! * normals.getY(vertex) + force[2]! * normals.getZ(vertex);
      values[vertex]! += Math.max(-along, 0) / this.areas[vertex]!;
    }
    return values;
  }

  private moveTested(looked: Set<number>): void {
    this.testedCount = 0;
    if (!this.tested.visible) return;
    const { isTested, flesh } = this;
    isTested.fill(0);
    for (const proxy of this.map.proxies) {
      if (looked.has(proxy.body)) for (const vertex of proxy.vertices) isTested[vertex] = 1;
    }
    const index = this.tested.geometry.index!;
    let count = 0;
    for (let t = 0; t < flesh.triangles.length; t += 3) {
      const [a, b, c] = [flesh.triangles[t]!, flesh.triangles[t + 1]!, flesh.triangles[t + 2]!];
      if (!(isTested[a]! & isTested[b]! & isTested[c]!)) continue;
      (index.array as Uint32Array).set([a, b, c], count);
      count += 3;
    }
    index.needsUpdate = true;
    this.tested.geometry.setDrawRange(0, count);
    this.testedCount = count / 3;
  }

  private moveHands(touched: NonNullable<MovingFrame["skin"]>): void {
    const place = new THREE.Matrix4();
    const balls = touched.balls.slice(0, MOST_HANDS);
    balls.forEach(({ centre, radius }, k) => {
      place.makeScale(radius, radius, radius).setPosition(centre[0]!, centre[1]!, centre[2]!);
      this.balls.setMatrixAt(k, place);
    });
    this.balls.count = balls.length;
    this.balls.instanceMatrix.needsUpdate = true;
    const ends = this.bands.geometry.attributes.position as THREE.BufferAttribute;
    const grabs = touched.grabs.slice(0, MOST_HANDS);
    grabs.forEach(({ vertex, target }, k) => {
      ends.setXYZ(2 * k, ...this.placeOf(vertex));
      ends.setXYZ(2 * k + 1, target[0]!, target[1]!, target[2]!);
    });
    this.bands.geometry.setDrawRange(0, 2 * grabs.length);
    ends.needsUpdate = true;
  }

  placeOf(vertex: number): [number, number, number] {
    const { nodes } = this.carrier;
    return [nodes[3 * vertex]!, nodes[3 * vertex + 1]!, nodes[3 * vertex + 2]!];
  }

  /** For tests: the largest displacement [m] and pressure [Pa], what is drawn of proxies, tested triangles and the twin, and how far its skin is from the soft one. */
  shown(frame: MovingFrame): object {
    this.largest = this.numbers(frame, "displacement").reduce((a, b) => Math.max(a, b), 0);
    this.most = this.numbers(frame, "pressure").reduce((a, b) => Math.max(a, b), 0);
    const { nodes, alone } = this.carrier;
    let apart = 0;
    for (let k = 0; k < alone.length; k += 3) {
      apart = Math.max(apart, Math.hypot(nodes[k]! - alone[k]!, nodes[k + 1]! - alone[k + 1]!, nodes[k + 2]! - alone[k + 2]!));
    }
    return {
      displacement: this.largest,
      pressure: this.most,
      proxies: this.proxies.filter(({ mesh }) => mesh.visible).length,
      proxyTriangles: this.proxies.reduce((sum, { mesh }) => sum + (mesh.visible ? mesh.geometry.index!.count / 3 : 0), 0),
      tested: this.testedCount,
      triangles: this.flesh.triangles.length / 3,
      twin: this.twin.visible,
      apart,
      balls: this.balls.count,
    };
  }

  dispose(): void {
    const drawn = [this.tested, this.balls, this.bands, this.carried, ...this.proxies.flatMap(({ mesh, wires }) => [mesh, wires])];
    for (const { geometry, material } of drawn) {
      if (geometry !== this.surface) geometry.dispose();
      (material as THREE.Material).dispose();
    }
  }
}

/** A third of the triangles around each vertex [m²]. */
function areas(places: ArrayLike<number>, triangles: number[]): Float32Array {
  const areas = new Float32Array(places.length / 3);
  const corner = (v: number) => new THREE.Vector3(places[3 * v]!, places[3 * v + 1]!, places[3 * v + 2]!);
  for (let t = 0; t < triangles.length; t += 3) {
    const corners = [triangles[t]!, triangles[t + 1]!, triangles[t + 2]!];
    const [a, b, c] = corners.map(corner) as [THREE.Vector3, THREE.Vector3, THREE.Vector3];
    const area = b.sub(a).cross(c.sub(a)).length() / 2;
    for (const v of corners) areas[v]! += area / 3;
  }
  return areas.map((area) => Math.max(area, 1e-12));
}
