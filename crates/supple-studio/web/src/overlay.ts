// The take that is compared with: the same figure once more, translucent, where that take was at the same step. A character of a file has its own
// materials there too; other figures have one colour.

import * as THREE from "three";
import { Character } from "./character";
import { Figure } from "./figure";
import { readFile } from "./load";
import type { MovingFrame, SceneMessage } from "./protocol";

const COLOUR = 0xd9722e;
/** How much of what is drawn is seen. */
const [PLAIN, DRESSED] = [0.38, 0.55];
/** Files of the overlay are read apart from those of the figures, which have nodes of their own. */
const FIRST_PLACE = 1000;

export class Overlay {
  readonly group = new THREE.Group();
  private readonly figure: Figure;
  private characters: Character[] = [];
  private gone = false;
  private readonly material = new THREE.MeshStandardMaterial({
    color: COLOUR,
    roughness: 0.8,
    transparent: true,
    opacity: PLAIN,
    depthWrite: false,
    // Where both takes are the same, the present one is seen.
    polygonOffset: true,
    polygonOffsetFactor: 2,
    polygonOffsetUnits: 8,
  });

  constructor(private readonly scene: SceneMessage) {
    this.material.depthTest = scene.flesh === null; // bones are seen through flesh
    this.figure = new Figure(scene);
    this.group.add(this.figure.group);
    for (const mesh of this.figure.group.children as THREE.InstancedMesh[]) {
      (mesh.material as THREE.Material).dispose();
      mesh.material = this.material;
      mesh.instanceColor = null;
      mesh.castShadow = mesh.receiveShadow = false;
      mesh.renderOrder = 1;
    }
  }

  /** Draws the files of the characters in place of shapes, once they are read. */
  async dress(renderer: THREE.WebGLRenderer): Promise<void> {
    const { scene } = this;
    const files = [{ file: scene.file, place: undefined }, ...scene.guests];
    const drawn: Character[] = [];
    for (const [k, { file, place }] of files.entries()) {
      if (!file) continue;
      const gltf = await readFile(file, renderer, FIRST_PLACE + k);
      if (this.gone) return;
      drawn.push(await Character.ofFile(scene, file, gltf, place));
    }
    if (this.gone || drawn.length === 0) return;
    for (const { meshes, group } of drawn) {
      for (const mesh of meshes) {
        mesh.castShadow = mesh.receiveShadow = false;
        mesh.renderOrder = 1;
        mesh.raycast = () => {};
        for (const material of [mesh.material].flat()) clear(material);
      }
      this.group.add(group);
    }
    this.characters = drawn;
    // Shapes within the characters are not seen; of figures without a file they are all there is.
    this.figure.group.visible = files.some(({ file }) => !file);
    this.move();
  }

  /** How many meshes are drawn with materials of their file. */
  get dressed(): number {
    return this.group.visible ? this.characters.reduce((sum, { meshes }) => sum + meshes.length, 0) : 0;
  }

  show(frame: MovingFrame): void {
    this.group.visible = frame.other !== null;
    if (!frame.other) return;
    this.figure.move({ ...frame, poses: frame.other });
    this.move();
  }

  dispose(): void {
    this.gone = true;
    this.figure.dispose();
    this.material.dispose();
    for (const character of this.characters) character.dispose();
  }

  private move(): void {
    for (const character of this.characters) character.move(this.figure.worlds);
  }
}

/** Makes a material translucent; once, since files are kept. */
function clear(material: THREE.Material): void {
  if (material.userData.cleared) return;
  material.userData.cleared = true;
  material.transparent = true;
  material.opacity *= DRESSED;
  // It hides itself, so that its own inside does not shine through, and is behind what is in the same place.
  Object.assign(material, { depthWrite: true, polygonOffset: true, polygonOffsetFactor: 2, polygonOffsetUnits: 8 });
  material.needsUpdate = true;
}
