// Directing: a person says what bones should do, and the character does it by its own actuators. Modes, styles, goals of the chosen
// bone, keyframes, and the meter of what acts on the root.

import { figure } from "./plots";
import type { Aim, Control, Goal, JointControl, Level, Mode, MovingFrame, SceneMessage, StatusMessage, Style } from "./protocol";

export interface DirectEvents {
  send(message: object): void;
  notify(text: string, level: string): void;
  /** The newest frame. */
  frame(): MovingFrame | null;
  /** The chosen body. */
  chosen(): number | null;
}

/** How often the meter is written anew [ms], and how fast its scale shrinks. */
const [INTERVAL, SHRINK] = [100, 0.97];

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}
const input = (id: string) => element<HTMLInputElement>(id);
const all = (selector: string) => document.querySelectorAll<HTMLButtonElement>(selector);

/** What a bone at this pose has to do for each handle. */
const HANDLES: Record<string, (position: number[], rotation: number[]) => Aim[]> = {
  orientation: (_, orientation) => [{ orientation }],
  position: (position) => [{ position }],
  height: (position) => [{ height: position[1]! }],
  stop: () => [{ velocity: [0, 0, 0] }, { angular_velocity: [0, 0, 0] }],
  coast: () => [{ acceleration: [0, 0, 0] }, { angular_acceleration: [0, 0, 0] }],
};
/** Which handle a goal belongs to, by its aim. */
const OF_AIM: Record<string, string> = {
  orientation: "orientation",
  position: "position",
  height: "height",
  velocity: "stop",
  angular_velocity: "stop",
  acceleration: "coast",
  angular_acceleration: "coast",
};
const handleOf = (goal: Goal) => OF_AIM[Object.keys(goal.aim)[0]!];

/** A row to choose the level of what a handle asks for. */
function levelRow(handle: string): HTMLElement {
  const row = document.createElement("label");
  row.className = "row wide";
  const name = document.createElement("span");
  name.textContent = `${handle[0]!.toUpperCase()}${handle.slice(1)}`;
  const select = document.createElement("select");
  select.dataset.level = handle;
  select.setAttribute("aria-label", `Level of ${handle}`);
  select.append(...["primary", "secondary", "tertiary"].map((level) => new Option(level)));
  row.append(name, select);
  return row;
}

/** A joint of which nothing was said. */
const USUAL: Omit<JointControl, "joint"> = { weight: 1, max_torque: null, actuation: "by_place" };

/** After this a change that the server does not show was refused (ms). */
const ANSWERED = 1000;

/** The built-in take that a scene plays, besides its own motion. */
function takeOf(scene: SceneMessage): string | null {
  const line = scene.scenes.find(({ name }) => name === scene.name.split(":")[0]);
  const take = /[:,]take=([^,]*)/.exec(scene.name)?.[1];
  return take && take !== line?.takes?.[0]?.name ? take : null;
}

export class Direct {
  private scene: SceneMessage | null = null;
  private status: StatusMessage | null = null;
  private written = 0;
  /** What fills the meter [N, N·m]. */
  private scale = 0;
  /** The keyframe that was clicked, by its time. */
  private key: number | null = null;
  private shownKeys = "";
  /** Changes that the server has not shown yet, and when the last was sent. */
  private sent: Partial<Control> = {};
  private sentAt = 0;

  constructor(private readonly events: DirectEvents) {
    for (const button of all("[data-mode]")) button.addEventListener("click", () => this.setMode(button.dataset.mode as Mode));
    for (const button of all("[data-style]")) button.addEventListener("click", () => this.set({ style: button.dataset.style as Style }));
    for (const button of all("[data-handle]")) button.addEventListener("click", () => this.toggle(button.dataset.handle!));
    element("remove-goals").addEventListener("click", () => this.setGoals(() => []));
    element("goal-levels").addEventListener("change", (event) => this.setLevel(event.target as HTMLSelectElement));
    const drag = element<HTMLSelectElement>("drag-level");
    drag.addEventListener("change", () => this.set({ drag_level: drag.value as Level }));
    const joints = element<HTMLSelectElement>("joint-level");
    joints.addEventListener("change", () => this.set({ joint_level: joints.value as Level }));
    element("pose-take").addEventListener("click", () => this.events.send({ type: "target_pose" }));
    element("pose-start").addEventListener("click", () => this.set({ pose: [] }));
    input("pose-share").addEventListener("input", () => this.set({ pose_share: input("pose-share").valueAsNumber }));
    input("joint-weight").addEventListener("input", () => this.setJoint({ weight: 10 ** input("joint-weight").valueAsNumber }));
    input("joint-torque").addEventListener("change", () => {
      const most = input("joint-torque").valueAsNumber;
      this.setJoint({ max_torque: Number.isFinite(most) ? Math.max(most, 0) : null });
    });
    const actuation = element<HTMLSelectElement>("joint-actuation");
    actuation.addEventListener("change", () => this.setJoint({ actuation: actuation.value as JointControl["actuation"] }));
    input("share").addEventListener("input", () => this.set({ share: input("share").valueAsNumber }));
    for (const id of ["hertz", "ratio"]) {
      input(id).addEventListener("input", () => {
        if (this.control) this.set({ landing: { ...this.control.landing, [id]: input(id).valueAsNumber } });
      });
    }
    element("add-key").addEventListener("click", () => this.addKey());
    element("remove-key").addEventListener("click", () => this.removeKey());
    element("keys").addEventListener("keydown", (event) => {
      if (event.key === "Delete" || event.key === "Backspace") this.removeKey();
    });
  }

  /** The control as it will be when what was sent has arrived: a change that follows at once builds on it. */
  private get control(): Control | null {
    const known = this.status?.settings.control;
    if (performance.now() - this.sentAt > ANSWERED) this.sent = {};
    return known ? { ...known, ...this.sent } : null;
  }

  setScene(scene: SceneMessage): void {
    this.scene = scene;
    this.sent = {};
    this.scale = 0;
    this.key = null;
  }

  setStatus(status: StatusMessage): void {
    this.status = status;
    const { control } = status.settings;
    for (const part of Object.keys(this.sent) as (keyof Control)[]) {
      if (JSON.stringify(this.sent[part]) === JSON.stringify(control[part])) delete this.sent[part];
    }
    const press = (button: HTMLElement, on: boolean) => button.setAttribute("aria-pressed", String(on));
    for (const button of all("[data-mode]")) press(button, button.dataset.mode === control.mode);
    for (const button of all("[data-style]")) press(button, button.dataset.style === control.style);
    for (const part of all("[data-when]")) part.hidden = !part.dataset.when!.split(" ").includes(control.mode);
    element<HTMLSelectElement>("drag-level").value = control.drag_level;
    element<HTMLSelectElement>("joint-level").value = control.joint_level;
    const values = { share: control.share, "pose-share": control.pose_share, ...control.landing };
    for (const [id, value] of Object.entries(values)) if (!input(id).matches(":active")) input(id).value = String(value);
    press(element("pose-start"), control.pose.length === 0);
    press(element("pose-take"), control.pose.length > 0);
    element("pose-share-value").textContent = `${Math.round(100 * control.pose_share)} %`;
    element("share-value").textContent = `${Math.round(100 * control.share)} %`;
    element("hertz-value").textContent = `${Number(control.landing.hertz.toPrecision(2))} Hz`;
    element("ratio-value").textContent = `× ${Number(control.landing.ratio.toPrecision(2))}`;
    element("take-plays").hidden = !this.scene || !takeOf(this.scene) || !status.settings.script;
    this.showBone();
  }

  /** What is asked of the chosen bone. */
  showBone(): void {
    const body = this.events.chosen();
    const own = this.control?.goals.filter((goal) => goal.body === body) ?? [];
    for (const button of all("[data-handle]")) {
      button.disabled = body === null;
      button.setAttribute("aria-pressed", String(own.some((goal) => handleOf(goal) === button.dataset.handle)));
    }
    element<HTMLButtonElement>("remove-goals").disabled = own.length === 0;
    this.showLevels(body, own);
    this.showJoint(body);
    element("goal-bone").textContent = body === null ? "Choose a bone to set goals for it." : (this.scene?.bodies[body]?.name ?? "");
  }

  /** A level for each thing that is asked of the bone. */
  private showLevels(body: number | null, own: Goal[]): void {
    const levels = new Map(own.map((goal) => [handleOf(goal)!, goal.level]));
    const pin = this.status?.pins.indexOf(body ?? -1) ?? -1;
    if (pin >= 0) levels.set("pin", this.status!.pin_levels[pin]!);
    const list = element("goal-levels");
    const selects = [...list.querySelectorAll("select")];
    if (selects.map((select) => select.dataset.level).join() !== [...levels.keys()].join()) {
      list.replaceChildren(...[...levels.keys()].map(levelRow));
    }
    for (const select of list.querySelectorAll("select")) select.value = levels.get(select.dataset.level!)!;
  }

  /** Brings what is asked of the chosen bone to the level chosen for it. */
  private setLevel(select: HTMLSelectElement): void {
    const level = select.value as Level;
    const handle = select.dataset.level!;
    if (handle === "pin") return this.events.send({ type: "pin", body: this.events.chosen(), on: true, level });
    this.setGoals((own) => own.map((goal) => (handleOf(goal) === handle ? { ...goal, level } : goal)));
  }

  /** The joint that holds the chosen bone, as it is directed. */
  private showJoint(body: number | null): void {
    const index = this.jointOf(body);
    element("directed-joint").hidden = index < 0;
    const joint = this.scene?.joints[index];
    if (!joint || !this.control) return;
    const own = this.control.joints.find((told) => told.joint === index) ?? { ...USUAL, joint: index };
    element("directed-joint-name").textContent = `Joint ${joint.name}`;
    if (!input("joint-weight").matches(":active")) input("joint-weight").value = String(Math.log10(own.weight));
    element("joint-weight-value").textContent = `× ${Number(own.weight.toPrecision(2))}`;
    if (document.activeElement !== input("joint-torque")) input("joint-torque").value = own.max_torque === null ? "" : String(own.max_torque);
    element("joint-torque-unit").textContent = joint.slide ? "N" : "N·m";
    element<HTMLSelectElement>("joint-actuation").value = own.actuation;
  }

  private jointOf(body: number | null): number {
    return body === null ? -1 : (this.scene?.joints.findIndex((joint) => joint.child === body) ?? -1);
  }

  /** Changes how the joint of the chosen bone is directed. */
  private setJoint(change: Partial<JointControl>): void {
    const joint = this.jointOf(this.events.chosen());
    if (!this.control || joint < 0) return;
    const own = this.control.joints.find((told) => told.joint === joint) ?? { ...USUAL, joint };
    const others = this.control.joints.filter((told) => told.joint !== joint);
    this.set({ joints: [...others, { ...own, ...change }].sort((a, b) => a.joint - b.joint) });
  }

  /** Once a frame: the meter and the track of keyframes. */
  tick(): void {
    const frame = this.events.frame();
    if (!frame || !this.control) return;
    this.showKeys(frame, this.control);
    const now = performance.now();
    if (now - this.written < INTERVAL) return;
    this.written = now;
    this.showMeter(frame);
  }

  /** Sends what changes of the control. A scene that plays a take of its own leaves the character to the person. */
  private set(change: Partial<Control>): void {
    if (!this.control) return;
    const own = this.scene && takeOf(this.scene) ? { script: false } : {};
    this.sent = { ...this.sent, ...change };
    this.sentAt = performance.now();
    this.events.send({ type: "set", control: change, ...own });
  }

  private setMode(mode: Mode): void {
    if (mode === "keyframes" && this.control?.keyframes.length === 0) {
      return this.events.notify("There are no keyframes yet: pose the character by hand and press K for each.", "info");
    }
    this.set({ mode });
  }

  /** Changes the goals of the chosen bone. */
  private setGoals(changed: (own: Goal[]) => Goal[]): void {
    const body = this.events.chosen();
    if (!this.control || body === null) return;
    const [own, others] = [true, false].map((is) => this.control!.goals.filter((goal) => (goal.body === body) === is));
    this.set({ goals: [...others!, ...changed(own!)] });
  }

  private toggle(handle: string): void {
    const [body, frame] = [this.events.chosen(), this.events.frame()];
    if (body === null || !frame) return;
    const pose = Array.from(frame.poses.subarray(7 * body, 7 * body + 7));
    const asked = HANDLES[handle]!(pose.slice(0, 3), pose.slice(3));
    const goals = asked.map((aim) => ({ body, point: [0, 0, 0], aim, level: "primary" as Level, weight: 1 }));
    this.setGoals((own) => {
      const rest = own.filter((goal) => handleOf(goal) !== handle);
      return rest.length < own.length ? rest : [...own, ...goals];
    });
  }

  /** What acts on the root, beside the pull from outside that would have done as much. */
  private showMeter(frame: MovingFrame): void {
    const { root, pull, actuators, limited, mode } = frame.direction;
    element("meter").hidden = mode === "off";
    if (mode === "off") return;
    this.scale = Math.max(pull.force, pull.torque, root, SHRINK * this.scale, 1e-9);
    const fill = (id: string, value: number) => (element(id).style.width = `${(100 * value) / this.scale}%`);
    fill("root-bar", root);
    fill("pull-bar", Math.max(pull.force, pull.torque));
    // What is left of rounding is nothing.
    element("root-value").textContent = root < 1e-9 * Math.max(this.scale, 1) ? "0 N, 0 N·m" : figure(root, "N or N·m");
    element("pull-value").textContent = `${figure(pull.force, "N", 2)}, ${figure(pull.torque, "N·m", 2)}`;
    element("actuators").textContent = `${actuators} actuators${limited > 0 ? `, ${limited} at their limit` : ""}`;
  }

  private addKey(): void {
    const time = input("key-time").valueAsNumber;
    this.events.send(Number.isFinite(time) ? { type: "key", time } : { type: "key" });
    input("key-time").value = "";
  }

  private removeKey(): void {
    const key = this.control?.keyframes.findIndex((frame) => frame.time === this.key) ?? -1;
    if (key >= 0) this.events.send({ type: "unkey", key });
  }

  /** Keyframes under the slider of time, which grows shorter where they lie beyond the end of the take. */
  private showKeys(frame: MovingFrame, control: Control): void {
    const times = control.keyframes.map((key) => key.time);
    const end = frame.time + (frame.end - frame.step) * this.status!.settings.dt;
    const length = Math.max(end, 1.05 * (times.at(-1) ?? 0), 1e-3);
    const share = (time: number) => `${((100 * time) / length).toFixed(2)}%`;
    if (this.key !== null && !times.includes(this.key)) this.key = null;
    element<HTMLButtonElement>("remove-key").disabled = this.key === null;
    element("keys").hidden = times.length === 0;
    input("time").style.setProperty("--share", String(end / length));
    const shown = JSON.stringify([times, this.key, length.toPrecision(3)]);
    if (shown === this.shownKeys) return;
    this.shownKeys = shown;
    const list = element("keys");
    while (list.children.length > times.length) list.lastElementChild!.remove();
    while (list.children.length < times.length) list.append(this.keyButton());
    times.forEach((time, k) => {
      const button = list.children[k] as HTMLButtonElement;
      button.dataset.key = String(time);
      button.style.left = share(time);
      button.title = `Keyframe at ${time.toFixed(2)} s. Click to go there, Delete to remove it.`;
      button.setAttribute("aria-label", `Keyframe at ${time.toFixed(2)} s`);
      button.setAttribute("aria-pressed", String(time === this.key));
    });
  }

  private keyButton(): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "key";
    button.addEventListener("click", () => {
      const frame = this.events.frame();
      this.key = Number(button.dataset.key);
      if (!frame || !this.status) return;
      const step = frame.step + Math.round((this.key - frame.time) / this.status.settings.dt);
      this.events.send({ type: "seek", take: frame.take, step: Math.min(Math.max(step, 0), frame.end) });
    });
    return button;
  }
}
