// What the take was, along the slider of time: speed and contacts, the part that is meant, ghosts and trails.

import * as THREE from "three";
import type { Character } from "./character";
import { Figure } from "./figure";
import { keep } from "./keep";
import type { Mark, MovingFrame, SceneMessage, StatusMessage } from "./protocol";
import type { Stage } from "./stage";

export interface TimelineEvents {
  notify(text: string, level: string): void;
  frame(): MovingFrame | null;
  chosen(): number | null;
  /** What is drawn with meshes of its own; none: shapes are. */
  drawn(): Character[];
}

/** The character at another moment. */
interface Ghost {
  figure: Figure;
  /** In place of its shapes, where it has meshes. */
  meshes: Character[];
  material: THREE.Material;
}

/** The way of a body: a line, with a dot where it was at each stored moment. */
interface Trail {
  body: string;
  line: THREE.Line;
  dots: THREE.Points;
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
/** They are drawn after the sky, and before all that is solid. */
const BEHIND = -1;
/** How much of the nearest ghost is seen, and what is left of that in the farthest. */
const [NEAREST, FARTHEST] = [0.4, 0.25];
const [SPEED, CONTACTS, STRENGTH] = ["#4b8fd6", "#d98a3d", "#d1495b"];
/** Ghosts before and after the present moment, and trails in turn. */
const [BEFORE, AFTER] = [0x4b8fd6, 0xd98a3d];
const TRAILS = [0xd1495b, 0x2f8dff, 0x3a9d5d, 0xb8860b, 0x8e5bd1];

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
  /** By how many times the chosen number of steps they are from the present one. */
  private readonly ghosts = new Map<number, Ghost>();
  /** Drawn after them: nothing, but what they hide is forgotten. */
  private readonly last = new THREE.Mesh(new THREE.BufferGeometry().setFromPoints([new THREE.Vector3()]), new THREE.MeshBasicMaterial({ colorWrite: false, depthWrite: false }));
  private trails: Trail[] = [];
  private drawnKey = "";
  private shownKey = "";
  /** The part of the take that is meant, in steps; null: to the beginning, to the end. */
  range: { from: number | null; to: number | null } = { from: null, to: null };

  constructor(
    private readonly stage: Stage,
    private readonly events: TimelineEvents,
  ) {
    stage.scene.add(this.group);
    Object.assign(this.last, { frustumCulled: false, renderOrder: 0.5 * BEHIND, visible: false, raycast: () => {} });
    this.last.onAfterRender = (renderer) => renderer.clearDepth();
    this.group.add(this.last);
    input("ghosts").addEventListener("input", () => (this.shownKey = ""));
    input("trails").addEventListener("input", () => this.trace(input("trails").checked));
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
    this.redress();
    for (const trail of this.trails.filter(({ body }) => this.bodyOf(body) < 0)) this.dropTrail(trail);
    this.lookedAt = this.drawnKey = "";
  }

  /** What is drawn of the characters has changed. */
  redress(): void {
    for (const { figure, meshes, material } of this.ghosts.values()) {
      this.group.remove(figure.group, ...meshes.map(({ group }) => group));
      figure.dispose();
      material.dispose();
    }
    this.ghosts.clear();
    this.shownKey = "";
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
    const key = JSON.stringify([frame.end, this.range, canvas.clientWidth, this.looked?.count, this.contacts.length, this.events.chosen(), this.status?.marks]);
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
    context.globalAlpha = 1;
    const strengths = this.strengths(end);
    context.strokeStyle = STRENGTH;
    context.lineWidth = 1.5 * devicePixelRatio;
    context.beginPath();
    for (const { step, value } of strengths) context.lineTo(x(step), height * (0.94 - 0.88 * value));
    context.stroke();
    context.globalAlpha = 0.45;
    context.fillStyle = getComputedStyle(canvas).color;
    const { from, to } = this.range;
    if (from !== null) context.fillRect(0, 0, x(from), height);
    if (to !== null) context.fillRect(x(to), 0, width - x(to), height);
    canvas.title = `Speed (blue${speeds.length ? `, up to ${Math.max(...speeds.map(({ value }) => value)).toFixed(1)} m/s` : ""}) and contacts (orange)${strengths.length ? "; how firmly the chosen bone is held (red line)" : ""}. Drag here to select a stretch; [ and ] set its start and end.`;
  }

  /** How firmly the chosen body, or the first, is held over time, 0 to 1, as its states say; nothing while none was changed. */
  private strengths(end: number): { step: number; value: number }[] {
    const { status, scene } = this;
    const body = this.events.chosen() ?? 0;
    const marks = status?.marks.filter(({ what }) => what?.mark === "state" && (!what.bodies?.length || what.bodies.includes(body))) ?? [];
    if (!status || !scene || marks.length === 0 || body >= status.tones.bodies.length) return [];
    let [from, goal, begun, length] = [1, 1, 0, 0];
    const at = (step: number) => {
      const share = length > 0 ? Math.min((step - begun) / length, 1) : 1;
      return from + (goal - from) * share * share * (3 - 2 * share);
    };
    const points = [{ step: 0, value: 1 }];
    const lead = (until: number) => {
      const over = Math.min(begun + length, until);
      for (let k = 1; k <= 8; k++) points.push({ step: begun + ((over - begun) * k) / 8, value: at(begun + ((over - begun) * k) / 8) });
      points.push({ step: until, value: at(until) });
    };
    for (const { step, what } of marks as (Mark & { what: { mark: "state" } })[]) {
      lead(step);
      [from, begun, length] = [at(step), step, what.blend / status.settings.dt];
      goal = what.state === "loose" || what.state === "limp" ? 0 : what.strength;
    }
    lead(end);
    return points.filter(({ step }) => step <= end);
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
  get shown(): { speeds: number; ghosts: number; meshes: number; trail: number; trails: string[] } {
    const seen = [...this.ghosts.values()].filter(({ figure, meshes }) => figure.group.visible || meshes.some(({ group }) => group.visible));
    const drawn = this.trails.filter(({ line }) => line.visible);
    return {
      speeds: this.speeds().length,
      ghosts: seen.length,
      meshes: seen.reduce((sum, { meshes }) => sum + meshes.reduce((sum, { meshes }) => sum + meshes.length, 0), 0),
      trail: drawn.reduce((sum, { line }) => sum + (line.geometry.getAttribute("position")?.count ?? 0), 0),
      trails: drawn.map(({ body }) => body),
    };
  }

  /** Ghosts every so many steps before and after, and the trails. */
  private showGhosts(frame: MovingFrame): void {
    const apart = Math.round(input("ghosts").valueAsNumber) || 0;
    const key = JSON.stringify([apart, this.trails.map(({ body }) => body), this.events.chosen(), frame.step, this.looked?.count]);
    if (key === this.shownKey) return;
    this.shownKey = key;
    for (let k = -GHOSTS; k <= GHOSTS; k++) {
      const row = apart > 0 && k !== 0 ? this.rowAt(frame.step + k * apart) : null;
      if (!row && !this.ghosts.has(k)) continue;
      const { figure, meshes } = this.ghosts.get(k) ?? this.ghost(k);
      figure.group.visible = row !== null && meshes.length === 0;
      for (const { group } of meshes) group.visible = row !== null;
      if (!row) continue;
      figure.move({ ...frame, poses: row });
      for (const drawn of meshes) drawn.move(figure.worlds);
    }
    this.last.visible = this.shown.ghosts > 0;
    input("trails").checked = this.trails.some(({ body }) => body === this.traced());
    for (const trail of this.trails) this.draw(trail);
    this.stage.touch();
  }

  private bodyOf(name: string): number {
    return this.scene?.bodies.findIndex((body) => body.name === name) ?? -1;
  }

  /** The body whose trail is switched: the chosen one, or the first. */
  private traced(): string | undefined {
    return this.scene?.bodies[this.events.chosen() ?? 0]?.name;
  }

  /** Draws the trail of that body from now on, or no more. */
  private trace(on: boolean): void {
    const body = this.traced();
    const there = this.trails.find((trail) => trail.body === body);
    if (there && !on) this.dropTrail(there);
    if (there || !on || body === undefined) return;
    const used = new Set(this.trails.map(({ line }) => (line.material as THREE.LineBasicMaterial).color.getHex()));
    const color = TRAILS.find((colour) => !used.has(colour)) ?? TRAILS[0]!;
    const look = { color, transparent: true, depthTest: false, toneMapped: false };
    const geometry = new THREE.BufferGeometry();
    const line = new THREE.Line(geometry, new THREE.LineBasicMaterial(look));
    const dots = new THREE.Points(geometry, new THREE.PointsMaterial({ ...look, size: 4 * Math.min(devicePixelRatio, 2), sizeAttenuation: false }));
    for (const part of [line, dots]) Object.assign(part, { frustumCulled: false, renderOrder: 2, raycast: () => {} });
    this.group.add(line, dots);
    this.trails.push({ body, line, dots });
    this.shownKey = "";
  }

  private dropTrail(trail: Trail): void {
    this.trails = this.trails.filter((other) => other !== trail);
    this.group.remove(trail.line, trail.dots);
    for (const part of [trail.line, trail.dots]) (part.material as THREE.Material).dispose();
    trail.line.geometry.dispose();
    this.shownKey = "";
  }

  private draw({ body: name, line, dots }: Trail): void {
    const { looked } = this;
    const body = this.bodyOf(name);
    line.visible = dots.visible = looked !== null && looked.count > 1 && body >= 0;
    if (!line.visible || !looked) return;
    const places = new Float32Array(3 * looked.count);
    for (let k = 0; k < looked.count; k++) {
      const at = 7 * (k * looked.bodies + body);
      places.set(looked.poses.subarray(at, at + 3), 3 * k);
    }
    line.geometry.dispose();
    line.geometry = dots.geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(places, 3));
  }

  private ghost(k: number): Ghost {
    const fade = FARTHEST ** ((Math.abs(k) - 1) / (GHOSTS - 1));
    // Behind the character, whichever is nearer: they are drawn before it, the farthest first, and what they hide is forgotten then.
    const look = { color: k < 0 ? BEFORE : AFTER, opacity: NEAREST * fade, fog: false, toneMapped: false };
    const blend = { blending: THREE.CustomBlending, blendSrcAlpha: THREE.OneFactor, blendDstAlpha: THREE.OneMinusSrcAlphaFactor } as const;
    const material = new THREE.MeshBasicMaterial({ ...look, ...blend, transparent: false });
    const renderOrder = BEHIND - 0.1 * Math.abs(k);
    const figure = new Figure(this.scene!);
    for (const mesh of figure.group.children as THREE.InstancedMesh[]) {
      (mesh.material as THREE.Material).dispose();
      Object.assign(mesh, { material, instanceColor: null, castShadow: false, receiveShadow: false, renderOrder });
    }
    figure.ghosts.visible = false;
    const meshes = this.events.drawn().map((drawn) => drawn.copy(material, renderOrder));
    this.group.add(figure.group, ...meshes.map(({ group }) => group));
    const made = { figure, meshes, material };
    this.ghosts.set(k, made);
    return made;
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
