// Things from the shelf: put beside the character, placed, carried, and thrown.

import * as THREE from "three";
import { TransformControls } from "three/addons/controls/TransformControls.js";
import { reasonOf } from "./keep";
import type { MovingFrame, SceneMessage, Thing } from "./protocol";
import type { Stage } from "./stage";

export interface ThingsEvents {
  send(message: object): void;
  notify(text: string, level: string): void;
  frame(): MovingFrame | null;
  /** Where the character is now. */
  box(): THREE.Box3;
  /** What is in this box is to be seen. */
  show(box: THREE.Box3): void;
  /** Where a ray meets a body. */
  hit(ray: THREE.Raycaster): THREE.Vector3 | null;
  chosen(): number | null;
  /** The clip that the scene's own character follows. */
  clip(): string | null;
}

/** Sizes of things [m], at size 1. */
const SIZES: Record<string, [number, number, number]> = {
  ball: [0.25, 0.25, 0.25],
  box: [0.4, 0.4, 0.4],
  capsule: [0.2, 0.6, 0.2],
  ramp: [1.5, 0.6, 2],
  stairs: [1.5, 1, 1.8],
  table: [1.2, 0.75, 0.8],
  swing: [0.7, 1.8, 0.3],
};
const MOVES = new Set(["ball", "box", "capsule", "prop"]);
const CHARACTER = "character";
/** The cannon has so many balls; the oldest flies again. */
const BALLS = 6;
const CANNON = "cannon ball";
/** Between the camera and a ball that leaves it [m]. */
const MUZZLE = 0.6;

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const input = (id: string) => element<HTMLInputElement>(id);

export class Things {
  aiming = false;
  readonly gizmo: TransformControls;
  /** What the gizmo moves. */
  private readonly handle = new THREE.Object3D();
  private scene: SceneMessage | null = null;
  /** Which ball flies next, and the throw that waits for balls to come. */
  private next = 0;
  private waiting: { x: number; y: number } | null = null;
  private readonly list = element<HTMLSelectElement>("thing");

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly stage: Stage,
    private readonly events: ThingsEvents,
  ) {
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-thing]")) {
      button.addEventListener("click", () => this.add(button.dataset.thing!));
    }
    for (const as of ["guest", "prop"]) {
      const chosen = input(`add-${as}`);
      chosen.addEventListener("change", async () => {
        const [file] = [...(chosen.files ?? [])];
        chosen.value = "";
        if (file) await this.invite(file, as);
      });
    }
    element("remove-thing").addEventListener("click", () => this.remove());
    element("cannon").addEventListener("click", () => this.aim(!this.aiming));
    element("place-thing").addEventListener("click", () => {
      this.place(!this.placing);
      const thing = this.meant();
      if (thing && this.placing) this.events.show(this.boxOf(thing));
    });
    element("hold-thing").addEventListener("click", () => this.hold());
    this.list.addEventListener("change", () => this.show());
    input("turn-thing").addEventListener("change", () => this.place(this.placing));
    for (const id of ["thing-mass", "thing-friction"]) input(id).addEventListener("change", () => this.change());
    input("throw-speed").addEventListener("input", () => {
      element("throw-speed-value").textContent = `${input("throw-speed").value} m/s`;
    });
    canvas.addEventListener(
      "pointerdown",
      (event) => {
        if (!this.aiming || event.button !== 0) return;
        event.preventDefault();
        event.stopImmediatePropagation();
        this.throwAt(event.clientX, event.clientY);
      },
      { capture: true },
    );
    this.gizmo = new TransformControls(stage.camera, canvas);
    this.gizmo.enabled = false;
    this.gizmo.addEventListener("change", () => stage.touch());
    this.gizmo.addEventListener("dragging-changed", ({ value }) => {
      stage.controls.enabled = !value;
      if (!value) this.placed();
    });
    stage.scene.add(this.handle, this.gizmo.getHelper());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && (this.aiming || this.placing)) {
        this.aim(false);
        this.place(false);
      }
    });
  }

  /** Whether the mouse is on the gizmo. */
  get busy(): boolean {
    return this.aiming || this.gizmo.dragging || (this.placing && this.gizmo.axis !== null);
  }

  get placing(): boolean {
    return this.gizmo.object !== undefined;
  }

  setScene(scene: SceneMessage): void {
    const before = new Set(this.things().map(({ name }) => name));
    const kept = this.list.value;
    this.scene = scene;
    this.list.replaceChildren(...scene.things.map(({ name }) => new Option(name, name)));
    // What was just put in is meant next.
    const added = scene.things.filter(({ name }) => !before.has(name) && !name.startsWith(CANNON));
    this.list.value = added.at(-1)?.name ?? kept;
    if (this.list.selectedIndex < 0) this.list.selectedIndex = scene.things.length - 1;
    this.show();
    const [last] = added.slice(-1);
    if (last && last.kind !== CHARACTER && before.size + 1 === scene.things.length) this.events.show(this.boxOf(last));
    if (this.waiting && this.balls().length > 0) {
      const { x, y } = this.waiting;
      this.waiting = null;
      this.throwAt(x, y);
    }
  }

  /** About where a thing is, however it is turned. */
  private boxOf(thing: Thing): THREE.Box3 {
    const { kind, size } = thing;
    const [x, y, z] = this.poseOf(thing).position as [number, number, number];
    const half = 0.5 * Math.max(size[0], size[2]);
    const low = MOVES.has(kind) ? y - 0.5 * size[1] : y;
    return new THREE.Box3(new THREE.Vector3(x - half, low, z - half), new THREE.Vector3(x + half, low + size[1], z + half));
  }

  /** The box around all things. */
  whole(): THREE.Box3 {
    return this.things().reduce((box, thing) => box.union(this.boxOf(thing)), new THREE.Box3());
  }

  /** The box around those things that are no farther from a box than its own size. */
  near(box: THREE.Box3): THREE.Box3 {
    const about = box.clone().expandByVector(box.getSize(new THREE.Vector3()));
    const near = this.things().map((thing) => this.boxOf(thing)).filter((other) => other.intersectsBox(about));
    return near.reduce((all, other) => all.union(other), new THREE.Box3());
  }

  /** A body was chosen: a thing by its name, too. */
  choose(): void {
    const chosen = this.events.chosen();
    const name = chosen === null ? undefined : this.scene?.bodies[chosen]?.name;
    if (this.things().some((thing) => thing.name === name)) this.list.value = name!;
    this.show();
  }

  /** A character of another file, or a thing, beside what is there. */
  private async invite(file: File, as: string): Promise<void> {
    const name = file.name.replace(/[^\x20-\x7e]/g, "_");
    const answer = await fetch("guest", { method: "POST", body: file, headers: { "x-file-name": name, "x-as": as } });
    if (!answer.ok) this.events.notify(`${file.name}: ${await reasonOf(answer)}`, "error");
  }

  private things(): Thing[] {
    return this.scene?.things ?? [];
  }

  private meant(): Thing | undefined {
    return this.things().find(({ name }) => name === this.list.value);
  }

  /** The bone that is chosen, for a thing to be held by. */
  private bone(): number | null {
    const chosen = this.events.chosen();
    return chosen !== null && chosen < this.scene!.bodies.length - this.scene!.thing_bodies ? chosen : null;
  }

  private put(things: Thing[]): void {
    this.events.send({ type: "things", things });
  }

  private show(): void {
    const thing = this.meant();
    element("thing-controls").hidden = !thing;
    element<HTMLButtonElement>("again").disabled = !this.scene?.rig;
    if (!thing) return this.place(false);
    // What stands has no mass that matters, and a character those of its bones.
    const [weighs, rubs] = [MOVES.has(thing.kind) || thing.kind === "swing", thing.kind !== CHARACTER];
    input("thing-mass").disabled = !weighs;
    input("thing-mass").value = weighs ? String(Number(thing.mass.toPrecision(6))) : "";
    input("thing-friction").disabled = !rubs;
    input("thing-friction").value = rubs ? String(Number(thing.friction.toPrecision(6))) : "";
    const bone = this.bone();
    const hold = element<HTMLButtonElement>("hold-thing");
    hold.textContent = thing.held ? `Let go of it` : bone === null ? "Hold" : `Hold by ${this.scene!.bodies[bone]!.name}`;
    hold.title = thing.held ? `${thing.held.by} holds it` : "The chosen bone carries it, exactly as the two are now";
    hold.disabled = !MOVES.has(thing.kind) || (!thing.held && bone === null);
    if (this.placing) this.place(true);
  }

  private change(): void {
    const mass = input("thing-mass").disabled ? (this.meant()?.mass ?? 1) : input("thing-mass").valueAsNumber;
    const friction = input("thing-friction").valueAsNumber;
    if (!Number.isFinite(mass) || !Number.isFinite(friction)) return this.show();
    const name = this.list.value;
    this.put(this.things().map((thing) => (thing.name === name ? { ...thing, mass, friction } : thing)));
  }

  private remove(): void {
    const name = this.list.value;
    this.put(this.things().filter((thing) => thing.name !== name));
  }

  private hold(): void {
    const thing = this.meant();
    if (thing) this.events.send({ type: "hold", thing: thing.name, body: thing.held ? null : this.bone() });
  }

  private aim(on: boolean): void {
    this.aiming = on;
    element("cannon").setAttribute("aria-pressed", String(on));
    this.canvas.style.cursor = on ? "crosshair" : "";
  }

  private add(kind: string): void {
    this.put([...this.things(), this.made(kind, this.things())]);
  }

  /** A thing beside the character, where none is yet. */
  private made(kind: string, others: Thing[], name = ""): Thing {
    const scale = kind === CHARACTER ? 1 : input("thing-size").valueAsNumber || 1;
    const size = (SIZES[kind] ?? [1, 1, 1]).map((x) => x * scale) as [number, number, number];
    const box = this.events.box();
    const floor = this.scene?.floor ?? Math.min(0, box.min.y);
    // On the side where there is more room.
    const right = others.reduce((x, thing) => Math.max(x, thing.position[0] + 0.5 * thing.size[0]), box.max.x + 0.25);
    const left = others.reduce((x, thing) => Math.min(x, thing.position[0] - 0.5 * thing.size[0]), box.min.x - 0.25);
    const middle = 0.5 * (box.min.x + box.max.x);
    const x = right - middle <= middle - left + 1e-3 ? right + 0.1 + 0.5 * size[0] : left - 0.1 - 0.5 * size[0];
    const y = MOVES.has(kind) ? floor + 0.5 * size[1] + 0.002 : floor;
    const z = 0.5 * (box.min.z + box.max.z);
    const mass = MOVES.has(kind) ? 2 * scale ** 3 : kind === "swing" ? 8 * scale ** 3 : 1;
    if (kind === CHARACTER) {
      const clip = this.events.clip();
      const position: Thing["position"] = [x, floor, z];
      return { name, kind, position, rotation: [0, 0, 0, 1], size, mass: 1, friction: 0.5, ...(clip ? { clip } : {}) };
    }
    // What one climbs faces the front, where the camera is.
    const rotation: Thing["rotation"] = kind === "stairs" || kind === "ramp" ? [0, 1, 0, 0] : [0, 0, 0, 1];
    return { name, kind, position: [x, y, z], rotation, size, mass, friction: 0.5 };
  }

  /** Where a thing is now: what moves, in the frame; what stands, as it was put. */
  private poseOf(thing: Thing): { position: number[]; rotation: number[] } {
    const body = this.scene!.bodies.findIndex(({ name }) => name === thing.name);
    const frame = this.events.frame();
    if (!MOVES.has(thing.kind) || body < 0 || !frame) return thing;
    return { position: [...frame.poses.slice(7 * body, 7 * body + 3)], rotation: [...frame.poses.slice(7 * body + 3, 7 * body + 7)] };
  }

  /** Arrows and rings at the thing that is meant, to put it elsewhere. */
  private place(on: boolean): void {
    const thing = this.meant();
    const shown = on && thing !== undefined;
    element("place-thing").setAttribute("aria-pressed", String(shown));
    this.gizmo.enabled = shown; // elsewhere it would take the fingers that turn the camera
    if (!shown) {
      this.gizmo.detach();
      return this.stage.touch();
    }
    const { position, rotation } = this.poseOf(thing);
    this.handle.position.fromArray(position);
    this.handle.quaternion.fromArray(rotation);
    this.gizmo.setMode(input("turn-thing").checked ? "rotate" : "translate");
    this.gizmo.attach(this.handle);
    this.stage.touch();
  }

  private placed(): void {
    const name = this.list.value;
    const position = this.handle.position.toArray();
    const rotation = this.handle.quaternion.normalize().toArray() as Thing["rotation"];
    this.put(this.things().map((thing) => (thing.name === name ? { ...thing, position, rotation, held: undefined } : thing)));
  }

  /** Balls of the cannon. */
  private balls(): string[] {
    return this.things().flatMap(({ name }) => (name.startsWith(CANNON) ? [name] : []));
  }

  /** A ball from the camera to what is under the mouse. */
  private throwAt(x: number, y: number): void {
    const balls = this.balls();
    if (balls.length === 0) {
      this.waiting = { x, y };
      const all = this.things().slice();
      for (let k = 0; k < BALLS; k++) all.push(this.made("ball", all, `${CANNON} ${k + 1}`));
      return this.put(all);
    }
    const rect = this.canvas.getBoundingClientRect();
    const at = new THREE.Vector2(((x - rect.left) / rect.width) * 2 - 1, 1 - ((y - rect.top) / rect.height) * 2);
    const ray = new THREE.Raycaster();
    ray.setFromCamera(at, this.stage.camera);
    const { origin, direction } = ray.ray;
    const ahead = direction.clone().multiplyScalar(this.stage.controls.target.distanceTo(origin)).add(origin);
    const target = this.events.hit(ray) ?? ahead;
    const speed = input("throw-speed").valueAsNumber;
    const from = origin.clone().addScaledVector(direction, Math.min(MUZZLE, 0.3 * target.distanceTo(origin)));
    const time = Math.max(target.distanceTo(from) / speed, 1e-3);
    const velocity = target.clone().sub(from).divideScalar(time);
    velocity.y += 0.5 * 9.81 * time; // it falls on its way
    const thing = balls[this.next++ % balls.length]!;
    this.events.send({ type: "throw", thing, from: from.toArray(), velocity: velocity.toArray() });
    this.events.send({ type: "play" });
  }
}
