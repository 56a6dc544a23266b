// What the take was, along the slider of time: speed and contacts, the part that is meant, ghosts and trails.

import * as THREE from "three";
import { Figure } from "./figure";
import { keep } from "./keep";
import type { MovingFrame, SceneMessage, StatusMessage } from "./protocol";
import type { Stage } from "./stage";

export interface TimelineEvents {
  notify(text: string, level: string): void;
  frame(): MovingFrame | null;
  chosen(): number | null;
}

/** Poses of a take: every so many steps, seven numbers a body. */
interface Looked {
  first: number;
  every: number;
  count: number;
  bodies: number;
  poses: Float32Array;
}

/** What is stored is asked for again after this time while a take grows [ms]. */
const REFRESH = 1000;
/** What was not seen for longer than this is not drawn as if it were known [s]. */
const UNKNOWN = 0.25;
/** Ghosts on each side of the present step, at most. */
const GHOSTS = 6;
const [SPEED, CONTACTS] = ["#4b8fd6", "#d98a3d"];

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const input = (id: string) => element<HTMLInputElement>(id);

export class Timeline {
  readonly group = new THREE.Group();
  private scene: SceneMessage | null = null;
  private status: StatusMessage | null = null;
  private looked: Looked | null = null;
  private lookedAt = "";
  private rested = 0;
  private asking = false;
  /** By step: contacts, as far as they were seen. */
  private contacts: number[] = [];
  private ghosts: Figure[] = [];
  private readonly material = new THREE.MeshBasicMaterial({ color: 0x4b8fd6, transparent: true, opacity: 0.11, depthWrite: false, fog: false });
  private readonly trail = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: 0xd1495b, transparent: true, depthTest: false, linewidth: 2 }));
  private drawnKey = "";
  private shownKey = "";
  /** The part of the take that is meant, in steps; null: to the beginning, to the end. */
  range: { from: number | null; to: number | null } = { from: null, to: null };

  constructor(
    private readonly stage: Stage,
    private readonly events: TimelineEvents,
  ) {
    this.group.add(this.trail);
    this.trail.frustumCulled = false;
    this.trail.visible = false;
    stage.scene.add(this.group);
    for (const id of ["ghosts", "trails"]) input(id).addEventListener("input", () => (this.shownKey = ""));
    element("trim-from").addEventListener("click", () => this.trim("from"));
    element("trim-to").addEventListener("click", () => this.trim("to"));
    element("export").addEventListener("click", () => this.open());
    element("export-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.write();
    });
    for (const id of ["export-format", "export-loop"]) element(id).addEventListener("change", () => this.offer());
    element("export-cancel").addEventListener("click", () => element<HTMLDialogElement>("export-dialog").close());
    this.brush(element("wave"));
    document.addEventListener("keydown", (event) => {
      const { target } = event;
      if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey) return;
      if (event.key === "[") this.trim("from");
      if (event.key === "]") this.trim("to");
    });
  }

  setScene(scene: SceneMessage): void {
    this.scene = scene;
    this.looked = null;
    this.contacts = [];
    this.range = { from: null, to: null };
    this.dropGhosts();
    this.lookedAt = this.drawnKey = this.shownKey = "";
  }

  setStatus(status: StatusMessage): void {
    if (this.status && this.status.take !== status.take) {
      this.contacts = [];
      this.range = { from: null, to: null };
    }
    this.status = status;
  }

  add(frame: MovingFrame): void {
    this.contacts[frame.step] = frame.contacts;
  }

  /** In or out: the present step, or none when it is that already. */
  private trim(end: "from" | "to"): void {
    const frame = this.events.frame();
    if (!frame) return;
    this.range[end] = this.range[end] === frame.step ? null : frame.step;
    const { from, to } = this.range;
    if (from !== null && to !== null && from >= to) this.range[end === "from" ? "to" : "from"] = null;
    this.drawnKey = "";
  }

  /** A part of the take is brushed on its wave; a click there means all of it again. */
  private brush(wave: HTMLElement): void {
    let begun: number | null = null;
    const at = (event: PointerEvent) => {
      const { left, width } = wave.getBoundingClientRect();
      return Math.round(Math.min(1, Math.max(0, (event.clientX - left) / width)) * (this.events.frame()?.end ?? 0));
    };
    wave.addEventListener("pointerdown", (event) => {
      begun = at(event);
      wave.setPointerCapture(event.pointerId);
    });
    wave.addEventListener("pointermove", (event) => {
      if (begun === null) return;
      const now = at(event);
      this.range = begun === now ? { from: null, to: null } : { from: Math.min(begun, now), to: Math.max(begun, now) };
      this.drawnKey = "";
    });
    wave.addEventListener("pointerup", (event) => {
      if (begun !== null && begun === at(event)) this.range = { from: null, to: null };
      begun = null;
      this.drawnKey = "";
    });
  }

  /** Once a frame. */
  tick(): void {
    const frame = this.events.frame();
    if (!frame || !this.scene || !this.status) return;
    const at = JSON.stringify([frame.generation, frame.take, frame.end]);
    const other = this.looked === null || !this.lookedAt.startsWith(JSON.stringify([frame.generation, frame.take]).slice(0, -1));
    if (!this.asking && at !== this.lookedAt && (other || performance.now() > this.rested)) void this.ask(at, frame);
    this.drawWave(frame);
    this.showGhosts(frame);
  }

  private async ask(at: string, { take, end }: MovingFrame): Promise<void> {
    this.asking = true;
    this.lookedAt = at;
    try {
      const every = Math.max(1, Math.ceil(end / 1200));
      const answer = await fetch(`look/${take}?every=${every}`);
      if (!answer.ok || answer.status === 204) return;
      const bytes = await answer.arrayBuffer();
      const [first, apart, count, bodies] = new Uint32Array(bytes, 0, 4);
      if (bodies !== this.scene?.bodies.length) return; // another scene was opened meanwhile
      this.looked = { first: first!, every: apart!, count: count!, bodies: bodies!, poses: new Float32Array(bytes, 16) };
      this.drawnKey = this.shownKey = "";
    } catch {
      // the connection is lost, which is told elsewhere
    } finally {
      this.asking = false;
      this.rested = performance.now() + REFRESH;
    }
  }

  /** Speed and contacts along the slider, and what is trimmed away. */
  private drawWave(frame: MovingFrame): void {
    const canvas = element<HTMLCanvasElement>("wave");
    const key = JSON.stringify([frame.end, this.range, canvas.clientWidth, this.looked?.count, this.contacts.length]);
    if (key === this.drawnKey) return;
    this.drawnKey = key;
    const [width, height] = [(canvas.width = canvas.clientWidth * devicePixelRatio), (canvas.height = canvas.clientHeight * devicePixelRatio)];
    const context = canvas.getContext("2d")!;
    context.clearRect(0, 0, width, height);
    const end = Math.max(1, frame.end);
    const x = (step: number) => (width * step) / end;
    const speeds = this.speeds();
    const dt = this.status?.settings.dt ?? 1 / 60;
    const unknown = Math.max(UNKNOWN / dt, 1.5 * (this.looked?.every ?? 1));
    const curve = (values: { step: number; value: number }[], colour: string) => {
      const most = Math.max(...values.map(({ value }) => value), 1e-9);
      context.fillStyle = colour;
      context.beginPath();
      context.moveTo(x(values[0]?.step ?? 0), height);
      values.forEach(({ step, value }, k) => {
        const last = values[k - 1]?.step ?? step;
        if (step - last > unknown) for (const edge of [last, step]) context.lineTo(x(edge), height);
        context.lineTo(x(step), height * (1 - (0.95 * value) / most));
      });
      context.lineTo(x(values.at(-1)?.step ?? 0), height);
      context.fill();
    };
    context.globalAlpha = 0.55;
    if (speeds.length > 1) curve(speeds, SPEED);
    const seen = this.contacts.flatMap((value, step) => (value === undefined ? [] : [{ step, value }]));
    if (seen.some(({ value }) => value > 0)) curve(seen, CONTACTS);
    context.globalAlpha = 0.45;
    context.fillStyle = getComputedStyle(canvas).color;
    const { from, to } = this.range;
    if (from !== null) context.fillRect(0, 0, x(from), height);
    if (to !== null) context.fillRect(x(to), 0, width - x(to), height);
    canvas.title = `Speed (blue${speeds.length ? `, up to ${Math.max(...speeds.map(({ value }) => value)).toFixed(1)} m/s` : ""}) and contacts (orange). [ and ] set where the part to export begins and ends.`;
  }

  /** The mean speed of the bodies that are no things [m/s], by step. */
  private speeds(): { step: number; value: number }[] {
    const { looked, scene } = this;
    const frame = this.events.frame();
    if (!looked || !scene || !frame || frame.step === 0 || looked.count < 2) return [];
    const dt = this.status!.settings.dt * looked.every;
    const bodies = looked.bodies - scene.thing_bodies;
    return Array.from({ length: looked.count - 1 }, (_, k) => {
      let sum = 0;
      for (let body = 0; body < bodies; body++) {
        const [a, b] = [7 * (k * looked.bodies + body), 7 * ((k + 1) * looked.bodies + body)];
        const { poses } = looked;
        sum += Math.hypot(poses[b]! - poses[a]!, poses[b + 1]! - poses[a + 1]!, poses[b + 2]! - poses[a + 2]!);
      }
      return { step: looked.first + looked.every * (k + 1), value: sum / bodies / dt };
    });
  }

  /** What tests look at. */
  get shown(): { speeds: number; ghosts: number; trail: number } {
    const trail = this.trail.visible ? (this.trail.geometry.getAttribute("position")?.count ?? 0) : 0;
    return { speeds: this.speeds().length, ghosts: this.ghosts.filter(({ group }) => group.visible).length, trail };
  }

  private dropGhosts(): void {
    for (const ghost of this.ghosts) {
      this.group.remove(ghost.group);
      ghost.dispose();
    }
    this.ghosts = [];
  }

  /** The figure every so many steps before and after, and the way of the chosen body. */
  private showGhosts(frame: MovingFrame): void {
    const apart = Math.round(input("ghosts").valueAsNumber) || 0;
    const trails = input("trails").checked;
    const key = JSON.stringify([apart, trails, this.events.chosen(), frame.step, this.looked?.count]);
    if (key === this.shownKey) return;
    this.shownKey = key;
    const { looked, scene } = this;
    const steps: number[] = [];
    if (apart > 0 && looked) {
      for (let k = -GHOSTS; k <= GHOSTS; k++) steps.push(frame.step + k * apart);
    }
    const rows = steps.filter((step) => step !== frame.step).map((step) => this.rowAt(step)).filter((row) => row !== null);
    while (this.ghosts.length < rows.length) this.ghosts.push(this.ghost(scene!));
    this.ghosts.forEach((ghost, k) => {
      ghost.group.visible = k < rows.length;
      if (k < rows.length) ghost.move({ ...frame, poses: rows[k]! });
    });
    const body = this.events.chosen() ?? 0;
    this.trail.visible = trails && looked !== null && looked.count > 1;
    if (this.trail.visible && looked) {
      const places = new Float32Array(3 * looked.count);
      for (let k = 0; k < looked.count; k++) places.set(looked.poses.subarray(7 * (k * looked.bodies + body), 7 * (k * looked.bodies + body) + 3), 3 * k);
      this.trail.geometry.dispose();
      this.trail.geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(places, 3));
    }
    this.stage.touch();
  }

  private ghost(scene: SceneMessage): Figure {
    const figure = new Figure(scene);
    for (const mesh of figure.group.children as THREE.InstancedMesh[]) {
      (mesh.material as THREE.Material).dispose();
      mesh.material = this.material;
      mesh.instanceColor = null;
      mesh.castShadow = mesh.receiveShadow = false;
      mesh.renderOrder = 1;
    }
    figure.ghosts.visible = false;
    this.group.add(figure.group);
    return figure;
  }

  /** The stored poses nearest to a step; null: there are none. */
  private rowAt(step: number): Float32Array | null {
    const { looked } = this;
    if (!looked) return null;
    const row = Math.round((step - looked.first) / looked.every);
    if (row < 0 || row >= looked.count) return null;
    return looked.poses.subarray(7 * row * looked.bodies, 7 * (row + 1) * looked.bodies);
  }

  private open(): void {
    const dt = this.status?.settings.dt ?? 1 / 60;
    const { from, to } = this.range;
    const end = this.events.frame()?.end ?? 0;
    input("export-from").value = ((from ?? 0) * dt).toFixed(3);
    input("export-to").value = ((to ?? end) * dt).toFixed(3);
    this.offer();
    const guests = this.scene?.guests ?? [];
    const whose = element<HTMLSelectElement>("export-figure");
    whose.closest("label")!.hidden = guests.length === 0;
    const own = this.scene?.file?.name ?? "the scene";
    whose.replaceChildren(...[own, ...guests.map(({ name }) => name)].map((name, k) => new Option(name, String(k))));
    element<HTMLDialogElement>("export-dialog").showModal();
  }

  /** Loops and travel are for the nodes of a character: other formats and scenes have none. */
  private get carries(): boolean {
    const format = element<HTMLSelectElement>("export-format").value;
    return (format === "glb" || format === "vrma") && (this.scene?.bones.length ?? 0) > 0;
  }

  /** All takes together are for a file that holds clips. */
  private get holdsMany(): boolean {
    return element<HTMLSelectElement>("export-format").value === "glb" && this.carries;
  }

  private offer(): void {
    for (const id of ["export-loop", "export-seam", "export-root"]) input(id).closest("label")!.hidden = !this.carries;
    // There is no seam without a loop.
    input("export-seam").disabled = !input("export-loop").checked;
    input("export-all").closest("label")!.hidden = !this.holdsMany;
  }

  private async write(): Promise<void> {
    const dt = this.status?.settings.dt ?? 1 / 60;
    const words = new URLSearchParams();
    const number = (id: string) => (input(id).value === "" ? null : input(id).valueAsNumber);
    const [from, to, fps] = [number("export-from"), number("export-to"), number("export-fps")];
    const end = (this.events.frame()?.end ?? 0) * dt;
    if (from !== null && from > 0) words.set("from", String(from));
    if (to !== null && to < end - 0.5 * dt) words.set("to", String(to));
    if (fps !== null) words.set("fps", String(fps));
    if (this.carries && input("export-loop").checked) words.set("loop", input("export-seam").value);
    const root = element<HTMLSelectElement>("export-root").value;
    if (this.carries && root !== "hips") words.set("root", root);
    if (this.holdsMany && input("export-all").checked) words.set("all", "true");
    const figure = element<HTMLSelectElement>("export-figure").value;
    if (figure !== "" && figure !== "0") words.set("figure", figure);
    const format = element<HTMLSelectElement>("export-format").value;
    element<HTMLDialogElement>("export-dialog").close();
    await keep(`baked.${format}?${words}`, (text) => this.events.notify(text, "error"));
  }
}
