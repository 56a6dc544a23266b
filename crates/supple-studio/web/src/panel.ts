// The controls around the picture. Each control sends a message; what it shows comes back with the status.

import { acceptFiles, chosen } from "./drop";
import { keep, reasonOf } from "./keep";
import type { Heat } from "./heat";
import type { Instruments } from "./instruments";
import { figure } from "./plots";
import type { Tool } from "./touch";
import type { Bone, MovingFrame, SceneMessage, StatusMessage } from "./protocol";

export type Layer = "shapes" | "bones" | "axes" | "limits" | "forces" | "ghost" | "gaps" | "loads" | "contacts" | "skin" | "cage" | "strain" | SkinLayer;
/** Layers of scenes with soft skin. */
type SkinLayer = "displacement" | "pressure" | "proxies" | "tested" | "twin";
const LAYERS: Layer[] = ["shapes", "bones", "axes", "limits", "forces", "ghost", "gaps", "loads", "contacts", "skin"];
/** Layers that colour the bodies: one at a time. */
const COLOURING: Layer[] = ["gaps", "loads", "strain", "displacement", "pressure"];

export interface PanelEvents {
  send(message: object): void;
  layer(layer: Layer, visible: boolean): void;
  chosen(body: number | null): void;
  /** Brings what is chosen into view, where it is now. */
  frame(): void;
  /** L: the character is let go, or carried back. */
  letGo(): void;
  /** Takes a tool for the skin, or puts it away. */
  tool(tool: Tool): void;
  /** The body that P means: under the mouse, else the chosen one. */
  meant(): number | null;
}

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}
const input = (id: string) => element<HTMLInputElement>(id);

export class Panel {
  chosen: number | null = null;
  private scene: SceneMessage | null = null;
  private status: StatusMessage | null = null;
  /** The newest frame, perhaps not yet shown. */
  frame: MovingFrame | null = null;
  private lastNotice = 0;
  private scrub: number | null = null;

  constructor(
    private readonly events: PanelEvents,
    private readonly instruments: Instruments,
  ) {
    this.wireScene();
    this.wireSettings();
    this.wireBody();
    this.wireBone();
    this.wireTime();
    this.wireTakes();
    for (const box of document.querySelectorAll<HTMLInputElement>("[data-layer]")) {
      box.addEventListener("change", () => this.layerChanged(box));
    }
    const help = element<HTMLDialogElement>("help");
    element("help-button").addEventListener("click", () => help.showModal());
    element("instruments-button").addEventListener("click", () => this.showInstruments(element("instruments").hidden));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** How strong pulls are, as a factor. */
  get strength(): number {
    return 10 ** input("strength").valueAsNumber;
  }

  setScene(scene: SceneMessage): void {
    // A changed bone makes the scene anew: what was chosen stays so.
    const chosen = this.scene?.name === scene.name && this.chosen !== null ? this.scene.bodies[this.chosen]?.name : undefined;
    this.showImport(scene);
    this.scene = scene;
    this.frame = null;
    const menu = element<HTMLSelectElement>("scene");
    const [name, parameters] = split(scene.name);
    menu.replaceChildren(...scene.scenes.map((line) => new Option(line.name, line.name)));
    if (!scene.scenes.some((line) => line.name === name)) menu.prepend(new Option(shortly(scene.name), name)); // a file
    menu.value = name;
    input("parameters").value = parameters;
    this.describeScene();
    this.listSolvers(scene);
    for (const part of document.querySelectorAll<HTMLElement>("[data-skin]")) part.hidden = !scene.skin;
    const bodies = element<HTMLSelectElement>("body");
    const options = scene.bodies.slice(0, 2000).map((body, k) => new Option(body.name, String(k)));
    bodies.replaceChildren(new Option("none", ""), ...options);
    this.showTree(scene);
    const again = chosen === undefined ? -1 : scene.bodies.findIndex((body) => body.name === chosen);
    this.choose(again < 0 ? null : again);
    document.title = `${shortly(scene.name)} · Supple`;
  }

  setStatus(status: StatusMessage): void {
    this.status = status;
    this.showDoctor(status);
    const { settings } = status;
    const put = (id: string, value: number) => {
      if (document.activeElement !== input(id) || !input(id).matches(":active")) input(id).value = String(value);
    };
    put("gravity", -settings.gravity[1]);
    put("stiffness", logarithm(settings.stiffness_scale));
    put("damping", logarithm(settings.damping_scale));
    put("dt", Math.round(1 / settings.dt));
    put("substeps", settings.substeps);
    element<HTMLSelectElement>("contacts").value = settings.contacts;
    for (const part of document.querySelectorAll<HTMLElement>("[data-springs]")) part.hidden = settings.contact_stiffness === null || settings.contacts === "off";
    put("contact-stiffness", logarithm(settings.contact_stiffness ?? 1));
    put("contact-slip", logarithm(settings.contact_slip ?? 1));
    element<HTMLSelectElement>("solver").value = settings.solver;
    element("solver-summary").textContent = this.scene?.solvers.find((line) => line.name === settings.solver)?.summary ?? "";
    input("torques").checked = settings.torques;
    input("script").checked = settings.script;
    input("hold").checked = settings.hold;
    input("pose").checked = settings.pose;
    element<HTMLSelectElement>("speed").value = String(status.speed);
    const play = element("play");
    play.querySelector("path")!.setAttribute("d", status.playing ? "M4 3h3v10H4zM9 3h3v10H9z" : "M4 2v12l10-6z");
    play.setAttribute("aria-label", status.playing ? "Pause" : "Play");
    if (document.activeElement !== input("take-name")) input("take-name").value = status.takes[status.take]?.name ?? "";
    const [quality, { reasons }] = [element("quality"), status];
    quality.hidden = reasons.length === 0;
    quality.textContent = `${status.quality === "failed" ? "Do not trust this run" : "Less exact than usual"}: ${reasons.join("; ")}.`;
    this.showValues();
    this.showJoint();
    this.showPin();
    if (status.notice && status.notice.number > this.lastNotice) {
      this.lastNotice = status.notice.number;
      this.notify(status.notice.text, status.notice.level);
    }
  }

  setFrame(frame: MovingFrame): void {
    const time = input("time");
    if (this.scrub === null && !time.matches(":active")) {
      time.max = String(frame.end);
      time.value = String(frame.step);
    }
    time.setAttribute("aria-valuetext", `${frame.time.toFixed(2)} seconds`);
    element("time-value").textContent = `${frame.time.toFixed(2)} s · ${frame.step} of ${frame.end}`;
    const mode = element("mode");
    const text = frame.failed ? "stopped" : frame.replaying ? "recorded" : frame.playing ? "live" : "paused";
    if (mode.textContent !== text) mode.textContent = text;
    mode.classList.toggle("replay", frame.replaying);
    mode.classList.toggle("failed", frame.failed);
    const pace = frame.behind && frame.playing ? `${Number((frame.pace * 100).toPrecision(2))} % of real time: too much for this machine` : "";
    if (element("pace").textContent !== pace) element("pace").textContent = pace;
  }

  /** What the colours of the bodies mean, or nothing when they are those of the limbs. */
  showLegend(heat: Heat | null): void {
    element("legend").hidden = heat === null;
    if (!heat) return;
    const bar = element<HTMLCanvasElement>("legend-bar");
    heat.drawScale(bar);
    const [low, high] = [figure(heat.low, heat.unit), figure(heat.high, heat.unit)];
    element("legend-name").textContent = heat.name;
    element("legend-low").textContent = low;
    element("legend-high").textContent = high;
    bar.setAttribute("aria-label", `${heat.name}: colours from ${low} to ${high}, dark to bright`);
  }

  choose(body: number | null): void {
    this.chosen = body;
    element<HTMLSelectElement>("body").value = body === null ? "" : String(body);
    for (const button of document.querySelectorAll<HTMLButtonElement>("#bone-tree button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.body) === body));
    }
    const joint = this.jointOf(body);
    this.instruments.choose(body, joint < 0 ? null : joint);
    this.showJoint();
    this.showBone();
    this.showPin();
    this.events.chosen(body);
  }

  notify(text: string, level: string): void {
    const note = document.createElement("div");
    note.className = `notice ${level}`;
    note.textContent = text;
    const notices = element("notices");
    notices.append(note);
    while (notices.children.length > 3) notices.firstElementChild!.remove();
    // Long enough to read it twice.
    setTimeout(() => note.remove(), 4000 + 100 * text.length);
  }

  /** Once a frame: sends where the slider of time was put. */
  tick(): void {
    if (this.scrub === null || !this.frame) return;
    this.events.send({ type: "seek", take: this.frame.take, step: this.scrub });
    this.scrub = null;
  }

  private set(change: object): void {
    this.events.send({ type: "set", ...change });
  }

  private wireScene(): void {
    const menu = element<HTMLSelectElement>("scene");
    const take = element<HTMLSelectElement>("take");
    const open = () => {
      const parameters = input("parameters").value.trim();
      this.events.send({ type: "open", scene: parameters ? `${menu.value}:${parameters}` : menu.value });
    };
    menu.addEventListener("change", () => {
      input("parameters").value = "";
      this.describeScene();
      open();
    });
    take.addEventListener("change", () => {
      const others = input("parameters").value.split(",").filter((part) => part.trim() && !part.trim().startsWith("take="));
      input("parameters").value = [`take=${take.value}`, ...others].join(",");
      open();
    });
    element("open").addEventListener("click", open);
    input("parameters").addEventListener("keydown", (event) => {
      if (event.key === "Enter") open();
    });
  }

  private describeScene(): void {
    const line = this.scene?.scenes.find((s) => s.name === element<HTMLSelectElement>("scene").value);
    const takes = line?.takes ?? [];
    const take = element<HTMLSelectElement>("take");
    take.replaceChildren(...takes.map(({ name }) => new Option(name, name)));
    take.parentElement!.hidden = takes.length === 0;
    take.value = /(?:^|,)take=([^,]*)/.exec(input("parameters").value)?.[1] ?? takes[0]?.name ?? "";
    const chosen = takes.findIndex(({ name }) => name === take.value);
    const summary = chosen > 0 ? takes[chosen]!.summary : (line?.summary ?? "");
    element("summary").textContent = element("summary").title = summary;
    input("parameters").placeholder = line?.parameters ?? "";
    input("parameters").disabled = !line?.parameters;
    input("parameters").parentElement!.hidden = !line;
    element("open").hidden = !line;
  }

  /** The solvers that the server has, those of one kind together. */
  private listSolvers(scene: SceneMessage): void {
    const kinds = new Map<string, HTMLOptionElement[]>();
    for (const { name, summary } of scene.solvers) {
      const [kind, variant] = split(name);
      const option = new Option(variant || kind, name);
      option.title = summary;
      kinds.set(kind, [...(kinds.get(kind) ?? []), option]);
    }
    const groups = [...kinds].map(([kind, options]) => {
      const group = document.createElement("optgroup");
      group.label = kind;
      group.append(...options);
      return group;
    });
    element("solver").replaceChildren(...groups);
    if (this.status) element<HTMLSelectElement>("solver").value = this.status.settings.solver;
  }

  private showInstruments(on: boolean): void {
    element("instruments").hidden = !on;
    element("instruments-button").setAttribute("aria-expanded", String(on));
  }

  private wireSettings(): void {
    const solver = element<HTMLSelectElement>("solver");
    solver.addEventListener("change", () => this.set({ solver: solver.value }));
    element("reset").addEventListener("click", () => {
      input("strength").value = "0";
      const joints = (this.status?.settings.joints ?? []).map(([joint]) => ({ joint, stiffness_scale: 1, damping_scale: 1 }));
      this.set({ gravity: [0, -9.81, 0], stiffness_scale: 1, damping_scale: 1, torques: true, script: true, hold: true, joints });
    });
    const slide = (id: string, change: (value: number) => object) => {
      input(id).addEventListener("input", () => {
        this.showValues();
        this.set(change(input(id).valueAsNumber));
      });
    };
    slide("gravity", (g) => ({ gravity: [0, -g, 0] }));
    slide("stiffness", (x) => ({ stiffness_scale: 10 ** x }));
    slide("damping", (x) => ({ damping_scale: 10 ** x }));
    slide("dt", (rate) => ({ dt: 1 / rate }));
    slide("substeps", (substeps) => ({ substeps }));
    slide("contact-stiffness", (x) => ({ contact_stiffness: 10 ** x }));
    slide("contact-slip", (x) => ({ contact_slip: 10 ** x }));
    const contacts = element<HTMLSelectElement>("contacts");
    contacts.addEventListener("change", () => this.set({ contacts: contacts.value }));
    input("strength").addEventListener("input", () => this.showValues());
    for (const id of ["torques", "script", "hold", "pose"]) {
      input(id).addEventListener("change", () => this.set({ [id]: input(id).checked }));
    }
  }

  private showValues(): void {
    const say = (id: string, text: string) => (element(`${id}-value`).textContent = text);
    say("gravity", `${input("gravity").valueAsNumber.toFixed(2)} m/s²`);
    for (const id of ["stiffness", "damping", "strength"]) say(id, `× ${Number((10 ** input(id).valueAsNumber).toPrecision(2))}`);
    // As it is, where the slider does not reach.
    const dt = this.status && !input("dt").matches(":active") ? this.status.settings.dt : 1 / input("dt").valueAsNumber;
    const rate = 1 / dt;
    say("dt", Math.abs(rate - Math.round(rate)) < 1e-6 * rate ? `1/${Math.round(rate)} s` : figure(dt, "s"));
    say("substeps", input("substeps").value);
    say("contact-stiffness", figure(10 ** input("contact-stiffness").valueAsNumber, "N/m", 2));
    say("contact-slip", figure(10 ** input("contact-slip").valueAsNumber, "m/s", 2));
  }

  private wireBody(): void {
    const list = element<HTMLSelectElement>("body");
    list.addEventListener("change", () => this.choose(list.value === "" ? null : Number(list.value)));
    element("pin").addEventListener("click", () => this.togglePin(this.chosen));
    input("pin-turn").addEventListener("change", () => {
      if (this.chosen !== null) this.events.send({ type: "pin", body: this.chosen, on: true, turn: input("pin-turn").checked });
    });
    element("unpin-all").addEventListener("click", () => {
      for (const body of this.status?.pins ?? []) this.events.send({ type: "pin", body, on: false });
    });
    input("keep").addEventListener("change", () => {
      if (this.instruments.keep(this.jointOf(this.chosen), input("keep").checked)) return;
      input("keep").checked = false;
      this.notify("The plots are full: remove another joint first.", "info");
    });
    for (const id of ["joint-stiffness", "joint-damping"]) {
      input(id).addEventListener("input", () => {
        const scales = {
          stiffness_scale: 10 ** input("joint-stiffness").valueAsNumber,
          damping_scale: 10 ** input("joint-damping").valueAsNumber,
        };
        this.set({ joints: this.meantJoints().map((joint) => ({ joint, ...scales })) });
      });
    }
  }

  /** The limbs as they hang on one another; each is chosen by a click. */
  private showTree(scene: SceneMessage): void {
    const below = new Map<number | null, number[]>();
    scene.bodies.slice(0, 2000).forEach((_, body) => {
      const parent = scene.joints.find(({ child }) => child === body)?.parent ?? null;
      below.set(parent, [...(below.get(parent) ?? []), body]);
    });
    const placed = new Set<number>();
    const list = (bodies: number[]): HTMLElement => {
      const all = document.createElement("ul");
      for (const body of bodies) {
        if (placed.has(body)) continue; // a loop of joints
        placed.add(body);
        const line = document.createElement("li");
        const button = document.createElement("button");
        Object.assign(button, { type: "button", textContent: scene.bodies[body]!.name });
        button.dataset.body = String(body);
        button.addEventListener("click", () => this.choose(body));
        line.append(button);
        const children = below.get(body);
        if (children) line.append(list(children));
        all.append(line);
      }
      return all;
    };
    element("bone-tree").replaceChildren(list(below.get(null) ?? []));
  }

  private togglePin(body: number | null): void {
    if (body === null) return this.notify("Choose a bone first: click it, or pick it from the list.", "info");
    this.events.send({ type: "pin", body, on: !this.status?.pins.includes(body) });
  }

  private showPin(): void {
    const pinned = this.chosen !== null && (this.status?.pins.includes(this.chosen) ?? false);
    element("pin").setAttribute("aria-pressed", String(pinned));
    element<HTMLButtonElement>("pin").disabled = this.chosen === null;
    element<HTMLButtonElement>("unpin-all").hidden = !this.status?.pins.length;
    element("pin-turn-row").hidden = !pinned;
    if (pinned) input("pin-turn").checked = this.status!.pin_turns[this.status!.pins.indexOf(this.chosen!)] ?? false;
  }

  /** The chosen body and all that hang on it. */
  limb(): number[] {
    if (this.chosen === null || !this.scene) return [];
    const limb = new Set([this.chosen]);
    for (let size = 0; size !== limb.size; ) {
      size = limb.size;
      for (const { parent, child } of this.scene.joints) if (parent !== null && limb.has(parent)) limb.add(child);
    }
    return [...limb];
  }

  private jointOf(body: number | null): number {
    return this.scene?.joints.findIndex((joint) => joint.child === body) ?? -1;
  }

  /** The joint of the chosen body, or all joints from there on. */
  private meantJoints(): number[] {
    const first = this.jointOf(this.chosen);
    if (first < 0 || !this.scene) return [];
    if (!input("limb").checked) return [first];
    const beyond = new Set([this.chosen!]);
    const joints = [first];
    for (let grown = true; grown; ) {
      grown = false;
      this.scene.joints.forEach((joint, k) => {
        if (joint.parent !== null && beyond.has(joint.parent) && !beyond.has(joint.child)) {
          beyond.add(joint.child);
          joints.push(k);
          grown = true;
        }
      });
    }
    return joints;
  }

  private showJoint(): void {
    const index = this.jointOf(this.chosen);
    element("joint-controls").hidden = index < 0;
    element("joint-fold").hidden = this.chosen === null || (index < 0 && !this.boneOf(this.chosen));
    element("body-hint").hidden = this.chosen !== null;
    if (index < 0 || !this.scene) return;
    input("keep").checked = this.instruments.isKept(index);
    const joint = this.scene.joints[index]!;
    element("joint-name").textContent = `Joint ${joint.name} (${joint.kind})`;
    const scales = this.status?.settings.joints.find((j) => j[0] === index) ?? [index, 1, 1];
    (["joint-stiffness", "joint-damping"] as const).forEach((id, k) => {
      const scale = scales[k + 1]!;
      if (!input(id).matches(":active")) input(id).value = String(logarithm(scale));
      element(`${id}-value`).textContent = `× ${Number(scale.toPrecision(2))}`;
    });
  }

  /** Each number sends the change of its bone; a pair of numbers is sent as a pair. */
  private wireBone(): void {
    const change = (values: object) => {
      const bone = this.boneOf(this.chosen);
      if (bone) this.events.send({ type: "bone", bone: bone.name, change: values });
    };
    for (const key of ["mass", "height", "scale"] as const) {
      const field = input(`rig-${key}`);
      field.addEventListener("change", () => {
        const asked = { ...this.scene?.rig?.asked };
        // Height and scale stand for each other; an empty field asks for nothing.
        if (key !== "mass") delete asked[key === "height" ? "scale" : "height"];
        if (Number.isFinite(field.valueAsNumber)) asked[key] = field.valueAsNumber;
        else delete asked[key];
        this.events.send({ type: "rig", options: asked });
      });
    }
    for (const key of ["mass", "sag", "settle", "strength"]) {
      const field = input(`bone-${key}`);
      field.addEventListener("change", () => {
        if (Number.isFinite(field.valueAsNumber)) change({ [key]: field.valueAsNumber });
      });
    }
    for (const key of ["range", "swing", "twist"]) {
      const fields = [input(`bone-${key}-0`), input(`bone-${key}-1`)];
      for (const field of fields) {
        field.addEventListener("change", () => {
          const pair = fields.map((f) => f.valueAsNumber);
          if (pair.every(Number.isFinite)) change({ [key]: pair });
        });
      }
    }
  }

  private boneOf(body: number | null): Bone | undefined {
    return body === null ? undefined : this.scene?.bones[body];
  }

  private showBone(): void {
    const rig = this.scene?.rig;
    element("rig").hidden = !rig;
    for (const key of ["mass", "height", "scale"] as const) {
      const field = input(`rig-${key}`);
      if (rig && document.activeElement !== field) field.value = String(Number(rig[key].toPrecision(4)));
    }
    element("bone").hidden = !this.scene?.bones.length;
    element("save-rig").hidden = !this.scene?.bones.length;
    const bone = this.boneOf(this.chosen);
    element("bone-controls").hidden = !bone;
    if (!bone) return;
    element("bone-name").textContent = bone.joint ? `${bone.name} (${bone.joint})` : `${bone.name} (a root)`;
    for (const row of document.querySelectorAll<HTMLElement>("[data-bone]")) {
      row.hidden = bone[row.dataset.bone as "joint" | "range" | "swing" | "twist"] === null;
    }
    const put = (id: string, value: number | undefined) => {
      if (document.activeElement !== input(id)) input(id).value = value === undefined ? "" : String(Number(value.toPrecision(4)));
    };
    for (const key of ["mass", "sag", "settle", "strength"] as const) put(`bone-${key}`, bone[key]);
    for (const key of ["range", "swing", "twist"] as const) [0, 1].forEach((k) => put(`bone-${key}-${k}`, bone[key]?.[k]));
    const limits: Record<string, string> = {
      name: "Limits guessed from its name",
      name_and_clips: "Limits guessed from its name, widened to what the clips do",
      clips: "Limits taken from what the clips do",
      shape: "Limits guessed from its shape",
      file: "Joint from the physics in the file",
      scene: "Limits from the scene file",
    };
    element("bone-from").textContent = [limits[bone.joint_from], bone.joint && bone.spring_from === "file" ? "spring from the file" : "", bone.sways ? "it swings freely on its own spring" : ""]
      .filter(Boolean)
      .join("; ");
  }

  private wireTime(): void {
    const { send } = this.events;
    element("play").addEventListener("click", () => this.playOrPause());
    element("step").addEventListener("click", () => send({ type: "step" }));
    element("back").addEventListener("click", () => this.seekBy(-1));
    element("start").addEventListener("click", () => this.seekTo(0));
    const speed = element<HTMLSelectElement>("speed");
    speed.addEventListener("change", () => send({ type: "speed", factor: Number(speed.value) }));
    element("mend").addEventListener("click", () => send({ type: "mend" }));
    input("time").addEventListener("input", () => (this.scrub = input("time").valueAsNumber));
  }

  private playOrPause(): void {
    this.events.send({ type: this.status?.playing ? "pause" : "play" });
  }

  private seekTo(step: number): void {
    if (this.frame) this.events.send({ type: "seek", take: this.frame.take, step });
  }

  /** What was made of a file: how much, and every note. */
  private showImport(scene: SceneMessage): void {
    const section = element("import");
    section.hidden = scene.meshes.length === 0 && scene.notes.length === 0;
    const mass = scene.bodies.reduce((sum, body) => sum + body.mass, 0);
    const kinds = `${scene.bodies.length} bodies, ${scene.joints.length} joints, ${mass.toPrecision(3)} kg`;
    element("import-summary").textContent = kinds;
    const lines = scene.notes.map((note) => {
      const line = document.createElement("li");
      line.textContent = `${note.part}: ${note.text}`;
      line.title = note.code;
      return line;
    });
    element("import-notes").replaceChildren(...lines);
  }

  /** What the doctor says of the model that a file gave. */
  private showDoctor(status: StatusMessage): void {
    const { doctor } = status;
    const text = (): string => {
      if (!doctor) return "Doctor: checking the rig…";
      const jerks = doctor.failure ?? `it survived ${doctor.seconds.toFixed(0)} s of jerking`;
      const found = doctor.findings.length;
      return found === 0 ? `Doctor: no problems found; ${jerks}.` : `Doctor: ${found} ${found === 1 ? "problem" : "problems"} found; ${jerks}.`;
    };
    // A file may give nothing to draw and nothing to note, and be ill all the same.
    if (doctor) element("import").hidden = false;
    element("doctor").textContent = text();
    const lines = (doctor?.findings ?? []).map((finding) => {
      const line = document.createElement("li");
      line.textContent = `${finding.part}: ${finding.what}. Fix: ${finding.remedy}`;
      line.title = finding.code;
      return line;
    });
    element("doctor-findings").replaceChildren(...lines);
    element("mend").hidden = lines.length === 0;
  }

  private seekBy(steps: number): void {
    if (this.frame) this.seekTo(Math.max(0, this.frame.step + steps));
  }

  private wireTakes(): void {
    const name = input("take-name");
    name.addEventListener("change", () => {
      if (this.status) this.events.send({ type: "rename", take: this.status.take, name: name.value });
    });
    const file = input("load-take");
    file.addEventListener("change", async () => {
      const files = [...(file.files ?? [])];
      file.value = "";
      try {
        const found = await chosen(files);
        if (found) await this.load(found);
      } catch (error) {
        this.notify((error as Error).message, "error");
      }
    });
    element("load-label").addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        file.click();
      }
    });
    for (const link of document.querySelectorAll<HTMLAnchorElement>("a[download]")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        void keep(link.href, (words) => this.notify(words, "error"));
      });
    }
    const motion = input("add-motion");
    motion.addEventListener("change", async () => {
      const [found] = [...(motion.files ?? [])];
      motion.value = "";
      if (found) await this.load(found, "motion");
    });
    acceptFiles(
      (dropped, as) => void this.load(dropped, as),
      (words) => this.notify(words, "error"),
    );
  }

  /** A character or takes; a motion for the present character, by its ending or where it was dropped. */
  private async load(file: File, as: "scene" | "motion" = "scene"): Promise<void> {
    const name = file.name.replace(/[^\x20-\x7e]/g, "_");
    if (as === "motion" || /\.(bvh|vrma)$/i.test(name)) return this.loadMotion(file, name, null);
    const answer = await fetch("take", { method: "POST", body: file, headers: { "x-file-name": name } });
    if (!answer.ok) this.notify(`${file.name}: ${await reasonOf(answer)}`, "error");
  }

  /** The motion of a file as a clip of the present character; of several the user chooses one. */
  private async loadMotion(file: File, name: string, clip: string | null): Promise<void> {
    const headers: Record<string, string> = { "x-file-name": name };
    if (clip !== null) headers["x-clip"] = clip;
    const answer = await fetch("motion", { method: "POST", body: file, headers });
    if (answer.ok) return;
    const reason = await reasonOf(answer);
    const clips = clip === null ? /FILE#CLIP: (.+?)(?: \[[a-z/]+\])?$/.exec(reason)?.[1]?.split(", ") : undefined;
    if (!clips) return this.notify(`${file.name}: ${reason}`, "error");
    const chosen = await this.ask(`${file.name} has several clips. Which one?`, clips);
    if (chosen !== null) await this.loadMotion(file, name, clips[chosen]!);
  }

  /** Asks with a button for each answer; null when it is closed. */
  private ask(question: string, answers: string[]): Promise<number | null> {
    const dialog = element<HTMLDialogElement>("ask");
    element("ask-question").textContent = question;
    return new Promise((resolve) => {
      let given: number | null = null;
      element("ask-answers").replaceChildren(
        ...answers.map((text, k) => {
          const made = document.createElement("button");
          made.type = "button";
          made.textContent = text;
          made.addEventListener("click", () => {
            given = k;
            dialog.close();
          });
          return made;
        }),
      );
      dialog.addEventListener("close", () => resolve(given), { once: true });
      dialog.showModal();
    });
  }

  private layerChanged(box: HTMLInputElement): void {
    const layer = box.dataset.layer as Layer;
    this.events.layer(layer, box.checked);
    if (!box.checked || !COLOURING.includes(layer)) return;
    for (const other of COLOURING.filter((name) => name !== layer)) {
      const otherBox = document.querySelector<HTMLInputElement>(`[data-layer=${other}]`)!;
      if (otherBox.checked) otherBox.click();
    }
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (target.matches("input[type=text], input[type=number], select")) return;
    const slider = target.matches("input[type=range]");
    if (slider && /^(Home|End|Arrow|Page)/.test(event.key)) return;
    if (target.matches("button, a, summary, input[type=checkbox], label") && event.key === " ") return;
    const layer = /^\d$/.test(event.key) ? LAYERS[(Number(event.key) + 9) % 10] : undefined;
    const actions: Record<string, () => void> = {
      " ": () => this.playOrPause(),
      ".": () => this.events.send({ type: "step" }),
      ",": () => this.seekBy(-1),
      Home: () => this.seekTo(0),
      End: () => this.seekTo(this.frame?.end ?? 0),
      p: () => this.togglePin(this.events.meant()),
      c: () => this.toggle("cage"),
      s: () => this.toggle("strain"),
      d: () => this.toggleOfSkin("displacement"),
      r: () => this.toggleOfSkin("pressure"),
      x: () => this.toggleOfSkin("proxies"),
      t: () => this.toggleOfSkin("tested"),
      w: () => this.toggleOfSkin("twin"),
      o: () => this.events.tool("poke"),
      g: () => this.events.tool("grab"),
      f: () => this.events.frame(),
      h: () => input("hold").click(),
      l: () => this.events.letGo(),
      m: () => element("add-mark").click(),
      j: () => element("cannon").click(),
      i: () => element("instruments-button").click(),
      k: () => element("add-key").click(),
      n: () => this.chooseNext(1),
      b: () => this.chooseNext(-1),
      "?": () => element<HTMLDialogElement>("help").showModal(),
    };
    const action = actions[event.key] ?? actions[event.key.toLowerCase()];
    if (action) action();
    else if (layer && event.key.length === 1) this.toggle(layer);
    else return;
    event.preventDefault();
  }

  private toggleOfSkin(layer: SkinLayer): void {
    if (this.scene?.skin) this.toggle(layer);
    else this.notify("This scene has no soft skin. Try tube, snake, deer or soft_hand.", "info");
  }

  private toggle(layer: Layer): void {
    document.querySelector<HTMLInputElement>(`[data-layer=${layer}]`)!.click();
  }

  private chooseNext(by: number): void {
    const count = this.scene?.bodies.length ?? 0;
    if (count === 0) return;
    const from = this.chosen ?? (by > 0 ? -1 : 0);
    this.choose((from + by + count) % count);
  }
}

/** A file without its folders. */
function shortly(name: string): string {
  return name.replace(/^.*[\\/](?=[^\\/]*$)/, "");
}

function split(name: string): [string, string] {
  const at = name.indexOf(":");
  return at < 0 ? [name, ""] : [name.slice(0, at), name.slice(at + 1)];
}

/** Exponent of a scale on a slider from 1/100 to 100; nothing at all shows at its lower end. */
function logarithm(scale: number): number {
  return scale > 0 ? Math.log10(scale) : -2;
}
