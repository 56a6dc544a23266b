// The instruments: plots of what the steps measured, and the last step in words.

import { COLOURS, Plot, figure } from "./plots";
import { JOINT, type MovingFrame, type SceneMessage } from "./protocol";

/** Plots are drawn this often at most [ms]: more often nobody reads them. */
const PLOT_INTERVAL = 50;
/** Words about a fallback stay this long after it [ms], so that they can be read. */
const HOLD = 1500;
/** Joints plotted at once. */
const MOST_JOINTS = COLOURS.length;
const DEGREES = 180 / Math.PI;

/** Why a step had trouble, by the number in the frame. */
const CAUSES = [
  "",
  "turned too far for one part",
  "gained energy from nothing",
  "was where the equations did not converge",
  "had a number beyond all bounds",
  "could not be solved in parts however small",
  "made the step fail",
  "could not move, with what it touches, and stayed where it was: let figures start apart, or pull less",
];
/** From here on a body is red in the picture; turning fast is usual. */
const MARKED = 2;
/** From here on it is named there as well; what halving mended is told beside the picture only. */
const NAMED = 4;

interface Fallback {
  count(frame: MovingFrame): number;
  /** What happened and what it means. */
  words(count: string): string;
}
const FALLBACKS: Fallback[] = [
  { count: (f) => f.turning, words: (n) => `Divided ${n} because a body turned far: normal in fast motion.` },
  { count: (f) => f.fallbacks, words: (n) => `Halved ${n}: a substep did not converge or gained energy, and was redone in two halves.` },
  { count: (f) => f.backward, words: (n) => `Backward rule ${n}: fast motion is damped in such a substep.` },
  { count: (f) => f.projections, words: (n) => `Projected ${n}: velocities that would have opened a joint were corrected, which only removes energy.` },
  { count: (f) => f.resorts, words: (n) => `Last resort ${n}: it went on with its energy held down. Use a shorter step or softer joints.` },
];

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const canvas = (id: string) => element<HTMLCanvasElement>(id);
const plainly = (value: number) => String(Math.round(value));

export class Instruments {
  private scene: SceneMessage | null = null;
  private lastStep = -1;
  private drawn = 0;
  /** Until then something may change: figures, or words that have been held long enough. */
  private busy = 0;
  /** Joints plotted, the first being that of the chosen body if there is one. */
  private readonly kept = new Set<number>();
  private chosen: number | null = null;
  private readonly fallen = FALLBACKS.map(() => ({ count: 0, until: 0 }));
  private marked: { body: number; words: string | null; until: number } | null = null;
  private readonly plots = {
    energy: new Plot(canvas("energy-plot"), { scale: "linear", write: (x) => figure(x, "J", 2) }),
    gap: new Plot(canvas("gap-plot"), { scale: "logarithmic", write: (x) => figure(x, "m", 2) }),
    stages: new Plot(canvas("stages-plot"), { scale: "linear", stacked: true, write: (x) => figure(x * 1e-6, "s", 2) }),
    parts: new Plot(canvas("parts-plot"), { scale: "linear", write: plainly }),
    angle: new Plot(canvas("angle-plot"), { scale: "linear", write: (x) => `${Math.round(x)}°` }),
    torque: new Plot(canvas("torque-plot"), { scale: "linear", write: (x) => figure(x, "N·m", 2) }),
  };

  constructor() {
    this.plots.energy.show([{ name: "all", colour: COLOURS[0]! }, { name: "of motion", colour: COLOURS[1]! }]);
    this.plots.gap.show([{ name: "gap", colour: COLOURS[3]! }]);
    new ResizeObserver(() => this.touch()).observe(element("instruments"));
    this.plots.parts.show([{ name: "parts", colour: COLOURS[0]! }, { name: "factorisations", colour: COLOURS[1]! }]);
  }

  setScene(scene: SceneMessage): void {
    this.scene = scene;
    this.kept.clear();
    this.fallen.forEach((line) => (line.until = 0));
    this.marked = null;
    this.plots.stages.show(scene.stages.map((name, k) => ({ name, colour: COLOURS[k % COLOURS.length]! })));
    this.clear();
    element("stages").replaceChildren(
      ...scene.stages.flatMap((name, k) => {
        const term = document.createElement("dt");
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = COLOURS[k % COLOURS.length]!;
        term.append(swatch, name);
        return [term, document.createElement("dd")];
      }),
    );
  }

  private clear(): void {
    this.lastStep = -1;
    Object.values(this.plots).forEach((plot) => plot.clear());
  }

  /** The joint of the chosen body is plotted, if it has one. */
  choose(body: number | null, joint: number | null): void {
    this.chosen = joint;
    for (const what of ["angle", "torque"]) {
      const words = body === null ? `Choose a bone to plot its joint’s ${what}` : "No joint holds this bone";
      element(`${what}-plot`).parentElement!.querySelector("p")!.textContent = words;
    }
    this.showJoints();
  }

  isKept(joint: number): boolean {
    return this.kept.has(joint);
  }

  /** Whether a joint stays plotted when another body is chosen. Returns whether there was room. */
  keep(joint: number, on: boolean): boolean {
    if (on && this.joints().length >= MOST_JOINTS && !this.joints().includes(joint)) return false;
    if (on) this.kept.add(joint);
    else this.kept.delete(joint);
    this.showJoints();
    return true;
  }

  private joints(): number[] {
    const all = [...this.kept];
    if (this.chosen !== null && !this.kept.has(this.chosen)) all.push(this.chosen);
    return all.slice(-MOST_JOINTS);
  }

  private showJoints(): void {
    if (!this.scene) return;
    const names = this.joints().map((k) => this.scene!.joints[k]!.name);
    const curves = names.map((name, k) => ({ name, colour: COLOURS[k % COLOURS.length]! }));
    this.plots.angle.show(curves);
    this.plots.torque.show(curves);
    for (const id of ["angle", "torque"]) element(`${id}-plot`).parentElement!.classList.toggle("empty", names.length === 0);
    element("plotted").replaceChildren(
      ...curves.map(({ name, colour }) => {
        const line = document.createElement("span");
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = colour;
        line.append(swatch, name);
        return line;
      }),
    );
    this.touch();
  }

  private touch(): void {
    this.busy = performance.now() + HOLD + 2 * PLOT_INTERVAL;
  }

  /** Takes the figures of a frame, shown or not. */
  add(frame: MovingFrame): void {
    this.note(frame);
    if (frame.step === this.lastStep) return;
    this.lastStep = frame.step;
    this.touch();
    const { kinetic, gravity, springs } = frame.energy;
    this.plots.energy.add([kinetic + gravity + springs, kinetic]);
    this.plots.gap.add([frame.gap]);
    this.plots.stages.add(frame.stages);
    this.plots.parts.add([frame.substeps, frame.factorisations]);
    const joints = this.joints();
    this.plots.angle.add(joints.map((k) => DEGREES * this.turn(frame, k, JOINT.angle)));
    this.plots.torque.add(joints.map((k) => this.turn(frame, k, JOINT.torque)));
  }

  /** What went wrong in a step, whether it was done in the end or not. */
  private note(frame: MovingFrame): void {
    const until = performance.now() + HOLD;
    FALLBACKS.forEach((fallback, k) => {
      const count = fallback.count(frame);
      if (count > 0) this.fallen[k] = { count, until };
    });
    const { body, cause } = frame.trouble;
    if (body !== null && cause >= MARKED) this.marked = { body, words: cause >= NAMED ? (CAUSES[cause] ?? null) : null, until };
    if (frame.failed) this.touch();
  }

  /** Of a joint with one axis about it, with its sign; otherwise how far or strong altogether. */
  private turn(frame: MovingFrame, joint: number, number: number): number {
    const at = JOINT.size * joint + number;
    const { turning_axis: axis, kind, swing } = this.scene!.joints[joint]!;
    if (axis !== null && kind !== "ball" && swing === null) return frame.joints[at + axis]!;
    return Math.hypot(frame.joints[at]!, frame.joints[at + 1]!, frame.joints[at + 2]!);
  }

  /** The body to mark, and words beside it: for a while, or as long as the run stands at that step. */
  trouble(frame: MovingFrame): { body: number; words: string | null } | null {
    const stands = !frame.playing && frame.trouble.cause >= MARKED;
    return this.marked && (stands || performance.now() < this.marked.until) ? this.marked : null;
  }

  /** Draws plots and words, not at every frame. */
  draw(frame: MovingFrame): void {
    const now = performance.now();
    if (now > this.busy || now - this.drawn < PLOT_INTERVAL) return;
    this.drawn = now;
    Object.values(this.plots).forEach((plot) => plot.draw());
    const say = (id: string, text: string) => {
      const place = element(id);
      if (place.textContent !== text) place.textContent = text;
    };
    const { kinetic, gravity, springs } = frame.energy;
    say("energy-value", figure(kinetic + gravity + springs, "J"));
    say("gap-value", figure(frame.gap, "m"));
    say("stages-value", figure(frame.micros * 1e-6, "s"));
    say("parts-value", `${frame.substeps} · ${frame.factorisations}`);
    const last = this.joints().at(-1);
    say("angle-value", last === undefined ? "" : `${(DEGREES * this.turn(frame, last, JOINT.angle)).toFixed(1)}°`);
    say("torque-value", last === undefined ? "" : figure(this.turn(frame, last, JOINT.torque), "N·m"));

    say("report-parts", String(frame.substeps));
    say("report-factorisations", `${frame.factorisations} and ${frame.solves}`);
    say("report-widest", frame.widest === null ? "none" : (this.scene?.joints[frame.widest]?.name ?? ""));
    say("report-limits", String(frame.limits));
    const times = element("stages").querySelectorAll("dd");
    times.forEach((cell, k) => {
      const text = figure((frame.stages[k] ?? 0) * 1e-6, "s");
      if (cell.textContent !== text) cell.textContent = text;
    });
    this.tellFallbacks(frame, now);
  }

  private tellFallbacks(frame: MovingFrame, now: number): void {
    const lines = FALLBACKS.flatMap((fallback, k) => {
      const { count, until } = this.fallen[k]!;
      const present = fallback.count(frame);
      if (present === 0 && now >= until) return [];
      const n = present || count;
      return [fallback.words(n === 1 ? "once" : `${n} times`)];
    });
    const { body, cause } = frame.trouble;
    if (body !== null) lines.push(`The worst of it: ${this.scene?.bodies[body]?.name ?? "a body"} ${CAUSES[cause] ?? ""}.`);
    if (lines.length === 0) lines.push("Every part went well at once.");
    const list = element("fallbacks");
    while (list.children.length > lines.length) list.lastElementChild!.remove();
    while (list.children.length < lines.length) list.append(document.createElement("li"));
    lines.forEach((text, k) => {
      if (list.children[k]!.textContent !== text) list.children[k]!.textContent = text;
    });
  }
}
