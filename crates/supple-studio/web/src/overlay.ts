// The take that is compared with: the same figure once more, translucent, where that take was at the same step.

import * as THREE from "three";
import { Figure } from "./figure";
import type { MovingFrame, SceneMessage } from "./protocol";

const COLOUR = 0xd9722e;

export class Overlay {
  readonly group: THREE.Group;
  private readonly figure: Figure;
  private readonly material = new THREE.MeshStandardMaterial({
    color: COLOUR,
    roughness: 0.8,
    transparent: true,
    opacity: 0.38,
    depthWrite: false,
    // Where both takes are the same, the present one is seen.
    polygonOffset: true,
    polygonOffsetFactor: 2,
    polygonOffsetUnits: 8,
  });

  constructor(scene: SceneMessage) {
    this.material.depthTest = scene.flesh === null; // bones are seen through flesh
    this.figure = new Figure(scene);
    this.group = this.figure.group;
    for (const mesh of this.group.children as THREE.InstancedMesh[]) {
      (mesh.material as THREE.Material).dispose();
      mesh.material = this.material;
      mesh.instanceColor = null;
      mesh.castShadow = mesh.receiveShadow = false;
      mesh.renderOrder = 1;
    }
  }

  show(frame: MovingFrame): void {
    this.group.visible = frame.other !== null;
    if (frame.other) this.figure.move({ ...frame, poses: frame.other });
  }

  dispose(): void {
    this.figure.dispose();
    this.material.dispose();
  }
}
