// What bodies carry: the character's own file with its materials, or the plain meshes of a robot. The engine moves the nodes; the graphics card does the rest.

import * as THREE from "three";
import type { GLTF } from "three/addons/loaders/GLTFLoader.js";
import { toCreasedNormals } from "three/addons/utils/BufferGeometryUtils.js";
import { clone } from "three/addons/utils/SkeletonUtils.js";
import { matrixOf } from "./figure";
import type { FileMessage, Frame3, Prop, SceneMessage, SkinMessage } from "./protocol";

/** Edges of plain meshes are sharp from this angle on [rad]. */
const CREASE = 0.7;
const GLOW = new THREE.Color(0x2f8dff);

/** A node that a body carries. */
interface Carried {
  object: THREE.Object3D;
  body: number;
  /** Its place in the world when all bodies are at rest. */
  rest: THREE.Matrix4;
}

export class Character {
  readonly group = new THREE.Group();
  /** What is drawn, without the light on the chosen limb. */
  readonly meshes: THREE.Mesh[] = [];
  private readonly carried: Carried[] = [];
  /** body_from_world at rest, by body. */
  private readonly fromRest: THREE.Matrix4[];
  private readonly moved: THREE.Matrix4[];
  private glows: { mesh: THREE.Mesh; glow: THREE.Mesh }[] = [];
  private lit: number | null = null;

  private constructor(
    fromRest: THREE.Matrix4[],
    /** Where its file lies in the world while all bodies are at rest, and how large. */
    private readonly place: THREE.Matrix4,
    /** Whether materials and geometries are its own: those of a file are kept for the next scene of it. */
    private readonly owns: boolean,
  ) {
    this.fromRest = fromRest;
    this.moved = fromRest.map(() => new THREE.Matrix4());
    // What no body carries stays there.
    place.decompose(this.group.position, this.group.quaternion, this.group.scale);
  }

  /** The character of a file. */
  static async ofFile(message: SceneMessage, file: FileMessage, gltf: GLTF, origin?: Frame3): Promise<Character> {
    const place = matrixOf(origin ?? { position: [0, 0, 0], rotation: [0, 0, 0, 1] }).scale(new THREE.Vector3().setScalar(file.scale));
    const character = new Character(restOf(message, place), place, false);
    const scene = gltf.scene;
    scene.updateMatrixWorld(true);
    const nodes = await Promise.all(file.carried_by.map((body, node) => (body === null ? null : gltf.parser.getDependency("node", node))));
    nodes.forEach((object: THREE.Object3D | null, node) => {
      if (object) character.carry(object, file.carried_by[node]!);
    });
    scene.traverse((object) => {
      // Lamps and cameras are not the character.
      if (object instanceof THREE.Light) object.visible = false;
      if (object instanceof THREE.Mesh) character.draw(object);
    });
    character.group.add(scene);
    return character;
  }

  /** A thing of a file, which one body carries. */
  static async ofProp(message: SceneMessage, { body, file, centre, scale }: Prop, gltf: GLTF): Promise<Character> {
    const prop = await Character.ofFile(message, file, gltf);
    const [x, y, z] = centre;
    prop.fromRest[body] = new THREE.Matrix4().makeScale(...scale).multiply(new THREE.Matrix4().makeTranslation(-x, -y, -z)).multiply(prop.place);
    return prop;
  }

  /** Meshes without a file of their own: each vertex goes with its four bodies, by weight. */
  static ofMeshes(message: SceneMessage): Character {
    const place = new THREE.Matrix4();
    const character = new Character(restOf(message, place), place, true);
    const bones = message.bodies.map(() => new THREE.Bone());
    bones.forEach((bone, body) => {
      bone.matrixWorld.copy(character.fromRest[body]!).invert();
      character.carry(bone, body);
    });
    const skeleton = new THREE.Skeleton(bones, character.fromRest);
    for (const plain of message.meshes) {
      const colour = new THREE.Color().setRGB(...plain.colour);
      const mesh = new THREE.SkinnedMesh(geometryOf(plain), new THREE.MeshStandardMaterial({ color: colour, roughness: 0.6, side: THREE.DoubleSide }));
      mesh.bind(skeleton, new THREE.Matrix4());
      character.group.add(mesh);
      character.draw(mesh);
    }
    if (character.meshes.length > 0) character.group.add(...bones);
    return character;
  }

  /** The same meshes once more, all in one material and without a shadow. */
  copy(material: THREE.Material, renderOrder: number): Character {
    const copy = new Character(this.fromRest, this.place, false);
    const copied = new Map<THREE.Object3D, THREE.Object3D>();
    const pair = (one: THREE.Object3D, other: THREE.Object3D) => {
      copied.set(one, other);
      one.children.forEach((child, k) => pair(child, other.children[k]!));
    };
    const all = clone(this.group);
    pair(this.group, all);
    copy.group.add(...all.children);
    for (const { glow } of this.glows) copied.get(glow)?.removeFromParent();
    for (const { object, body, rest } of this.carried) copy.carried.push({ object: copied.get(object)!, body, rest });
    for (const mesh of this.meshes.map((mesh) => copied.get(mesh) as THREE.Mesh)) {
      Object.assign(mesh, { material, castShadow: false, receiveShadow: false, renderOrder, raycast: () => {} });
      copy.meshes.push(mesh);
    }
    return copy;
  }

  get present(): boolean {
    return this.meshes.length > 0;
  }

  /** Moves every node; `worlds` holds world_from_body, sixteen numbers a body. */
  move(worlds: Float32Array): void {
    if (!this.group.visible) return;
    this.moved.forEach((moved, body) => moved.fromArray(worlds, 16 * body).multiply(this.fromRest[body]!));
    for (const { object, body, rest } of this.carried) {
      object.matrixWorld.multiplyMatrices(this.moved[body]!, rest);
      object.matrixWorldNeedsUpdate = true; // what hangs on it and is carried by no body
    }
  }

  /** Points of it as it stands at rest, up to so many of each mesh, evenly. */
  restPoints(most = 2000): THREE.Vector3[] {
    const points: THREE.Vector3[] = [];
    for (const places of this.atRest(() => this.places())) {
      const apart = 3 * Math.ceil(places.length / 3 / most);
      for (let k = 0; k < places.length; k += apart) points.push(new THREE.Vector3().fromArray(places, k));
    }
    return points;
  }

  /** Lights up what a body carries, or nothing. */
  light(body: number | null): void {
    if (body === this.lit) return;
    this.lit = body;
    if (this.glows.length === 0 && body !== null) this.glows = this.meshes.map((mesh) => ({ mesh, glow: glowOf(mesh) }));
    const bodyOf = new Map(this.carried.map(({ object, body }) => [object, body]));
    const carrier = (object: THREE.Object3D | null): number | undefined =>
      object === null ? undefined : (bodyOf.get(object) ?? carrier(object.parent));
    for (const { mesh, glow } of this.glows) {
      glow.visible = body !== null && paintShares(mesh, body, carrier);
    }
  }

  /** How many vertices are lit, for tests. */
  get litVertices(): number {
    const shares = this.glows.filter(({ glow }) => glow.visible).map(({ mesh }) => mesh.geometry.getAttribute("limb").array);
    return shares.reduce((sum, list) => sum + list.filter((share) => share > 0.5).length, 0);
  }

  /** Lowest point and height of what is drawn, and how much longer than at rest its edges are, at most; edges below a part of the height are left out. */
  measure(): { lowest: number; height: number; stretch: number; middle: number[] } {
    let [lowest, highest, stretch] = [Infinity, -Infinity, 1];
    const box = new THREE.Box3();
    const [now, before] = [this.places(), this.atRest(() => this.places())];
    for (const places of now) {
      box.union(new THREE.Box3().setFromArray(places));
      for (let k = 1; k < places.length; k += 3) {
        lowest = Math.min(lowest, places[k]!);
        highest = Math.max(highest, places[k]!);
      }
    }
    const length = (places: Float32Array, a: number, b: number) =>
      Math.hypot(places[3 * a]! - places[3 * b]!, places[3 * a + 1]! - places[3 * b + 1]!, places[3 * a + 2]! - places[3 * b + 2]!);
    this.meshes.forEach(({ geometry }, m) => {
      const corners = geometry.index ?? { count: geometry.getAttribute("position").count, getX: (k: number) => k };
      for (let t = 0; t < corners.count; t++) {
        const [a, b] = [corners.getX(t), corners.getX(t % 3 === 2 ? t - 2 : t + 1)];
        const rest = length(before[m]!, a, b);
        if (rest > 0.01 * (highest - lowest)) stretch = Math.max(stretch, length(now[m]!, a, b) / rest);
      }
    });
    return { lowest, height: highest - lowest, stretch, middle: box.getCenter(new THREE.Vector3()).toArray() };
  }

  /** By mesh: up to so many of its vertices where they are drawn, evenly. */
  points(most: number): number[][] {
    return this.places().map((places) => {
      const apart = Math.ceil(places.length / 3 / most);
      return Array.from(places).filter((_, k) => Math.floor(k / 3) % apart === 0);
    });
  }

  dispose(): void {
    for (const { glow } of this.glows) glow.removeFromParent();
    if (!this.owns) return;
    for (const mesh of this.meshes) {
      mesh.geometry.dispose();
      (mesh.material as THREE.Material).dispose();
    }
  }

  private carry(object: THREE.Object3D, body: number): void {
    const rest = (object.userData.atRest as THREE.Matrix4 | undefined) ?? object.matrixWorld.clone();
    object.userData.atRest = rest;
    object.matrixWorldAutoUpdate = false;
    this.carried.push({ object, body, rest });
  }

  private draw(mesh: THREE.Mesh): void {
    if (!mesh.geometry.getAttribute("normal")) {
      // Flat, as glTF asks, but with normals: without them nothing keeps it from shading itself.
      mesh.geometry = mesh.geometry.index ? mesh.geometry.toNonIndexed() : mesh.geometry;
      mesh.geometry.computeVertexNormals();
      for (const material of [mesh.material].flat()) (material as THREE.MeshStandardMaterial).flatShading = false;
    }
    mesh.castShadow = mesh.receiveShadow = true;
    mesh.frustumCulled = false; // its bounds are those at rest
    this.meshes.push(mesh);
  }

  /** Does something with every node where it is at rest, and puts all back. */
  private atRest<T>(done: () => T): T {
    const now = this.carried.map(({ object }) => object.matrixWorld.clone());
    for (const { object, rest } of this.carried) object.matrixWorld.multiplyMatrices(this.place, rest);
    const result = done();
    this.carried.forEach(({ object }, k) => object.matrixWorld.copy(now[k]!));
    this.group.updateMatrixWorld(true);
    return result;
  }

  /** By mesh: where its vertices are, three numbers each. */
  private places(): Float32Array[] {
    this.group.updateMatrixWorld(true);
    const place = new THREE.Vector3();
    return this.meshes.map((mesh) => {
      const places = new Float32Array(3 * mesh.geometry.getAttribute("position").count);
      for (let v = 0; v < places.length / 3; v++) mesh.getVertexPosition(v, place).applyMatrix4(mesh.matrixWorld).toArray(places, 3 * v);
      return places;
    });
  }
}

/** By body: what leads from a file that lies at `place` while all is at rest to the body. */
function restOf(message: SceneMessage, place: THREE.Matrix4): THREE.Matrix4[] {
  return message.bodies.map(({ rest }) => matrixOf(rest).invert().multiply(place));
}

function geometryOf({ vertices, triangles, bodies, weights }: SkinMessage): THREE.BufferGeometry {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(vertices, 3));
  geometry.setAttribute("skinIndex", new THREE.Uint16BufferAttribute(bodies, 4));
  geometry.setAttribute("skinWeight", new THREE.Float32BufferAttribute(weights, 4));
  geometry.setIndex(triangles);
  return toCreasedNormals(geometry, CREASE);
}

/** The same mesh once more, over itself: light where its vertices have a share in the chosen limb. */
function glowOf(mesh: THREE.Mesh): THREE.Mesh {
  const material = new THREE.MeshBasicMaterial({ color: GLOW, transparent: true, depthWrite: false, toneMapped: false, opacity: 0.45 });
  Object.assign(material, { polygonOffset: true, polygonOffsetFactor: -1, polygonOffsetUnits: -2 });
  material.onBeforeCompile = (shader) => {
    shader.vertexShader = `attribute float limb; varying float share;\n${shader.vertexShader}`.replace(
      "#include <begin_vertex>",
      "#include <begin_vertex>\nshare = limb;",
    );
    shader.fragmentShader = `varying float share;\n${shader.fragmentShader}`.replace(
      "#include <color_fragment>",
      "#include <color_fragment>\ndiffuseColor.a *= smoothstep(0.15, 0.85, share);",
    );
  };
  const { geometry } = mesh;
  geometry.setAttribute("limb", new THREE.BufferAttribute(new Float32Array(geometry.getAttribute("position").count), 1));
  const glow = mesh instanceof THREE.SkinnedMesh ? new THREE.SkinnedMesh(geometry, material) : new THREE.Mesh(geometry, material);
  if (glow instanceof THREE.SkinnedMesh && mesh instanceof THREE.SkinnedMesh) glow.bind(mesh.skeleton, mesh.bindMatrix);
  glow.morphTargetInfluences = mesh.morphTargetInfluences;
  glow.morphTargetDictionary = mesh.morphTargetDictionary;
  glow.frustumCulled = false;
  glow.renderOrder = 1;
  glow.raycast = () => {};
  mesh.add(glow);
  return glow;
}

/** By vertex of a mesh: the share that a body has in it. Whether it has any. */
function paintShares(mesh: THREE.Mesh, body: number, carrier: (object: THREE.Object3D | null) => number | undefined): boolean {
  const limb = mesh.geometry.getAttribute("limb") as THREE.BufferAttribute;
  const shares = limb.array as Float32Array;
  limb.needsUpdate = true;
  if (!(mesh instanceof THREE.SkinnedMesh)) {
    const own = carrier(mesh) === body;
    shares.fill(own ? 1 : 0);
    return own;
  }
  const isOwn = mesh.skeleton.bones.map((bone: THREE.Bone) => carrier(bone) === body);
  const [bones, weights] = [mesh.geometry.getAttribute("skinIndex"), mesh.geometry.getAttribute("skinWeight")];
  let any = false;
  for (let v = 0; v < shares.length; v++) {
    let share = 0;
    for (let k = 0; k < 4; k++) if (isOwn[bones.getComponent(v, k)]) share += weights.getComponent(v, k);
    shares[v] = share;
    any ||= share > 0.15;
  }
  return any;
}
