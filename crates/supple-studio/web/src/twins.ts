// The character twice, side by side, with a word above each: with its soft skin, and with the skin carried by the bones alone.

import * as THREE from "three";
import type { SoftView } from "./soft";
import type { Stage } from "./stage";

/** From one to the other, in widths of the character. */
const APART = 1.25;

export class Twins {
  private soft: SoftView | null = null;
  private box = new THREE.Box3();
  private ground = 0;
  private on = false;
  private readonly labels = ["soft-label", "twin-label"].map((id) => document.getElementById(id) as HTMLElement);

  constructor(private readonly stage: Stage) {}

  /** A scene begins: its character is in this box. */
  begin(soft: SoftView | null, box: THREE.Box3, ground: number): void {
    this.soft = soft;
    this.box = box;
    this.ground = ground;
    this.on = false;
  }

  /** Shows one or both; the camera then sees all there is. */
  show(wanted: boolean): void {
    const on = wanted && this.soft !== null;
    if (!this.soft || on === this.on) return;
    this.on = on;
    const radius = this.stage.radius;
    const both = this.box.clone();
    if (on) {
      // To the right of the picture, along the floor.
      const right = new THREE.Vector3().setFromMatrixColumn(this.stage.camera.matrixWorld, 0).setY(0).normalize();
      const size = this.box.getSize(new THREE.Vector3());
      const width = Math.abs(right.x) * size.x + Math.abs(right.z) * size.z;
      this.soft.twin.position.copy(right).multiplyScalar(APART * width);
      both.union(this.box.clone().translate(this.soft.twin.position));
    }
    this.stage.fit(both, this.ground);
    // Sizes of marks and arrows stay those of one character.
    this.stage.radius = radius;
  }

  /** Once a frame: the words follow the camera. */
  tick(toScreen: (point: THREE.Vector3) => [number, number]): void {
    const top = this.box.getCenter(new THREE.Vector3()).setY(this.box.max.y);
    this.labels.forEach((label, k) => {
      label.hidden = !this.on;
      if (!this.on || !this.soft) return;
      const at = k === 0 ? top : top.clone().add(this.soft.twin.position);
      const [x, y] = toScreen(at);
      label.style.left = `${x}px`;
      label.style.top = `${Math.max(y, 30)}px`;
    });
  }
}
