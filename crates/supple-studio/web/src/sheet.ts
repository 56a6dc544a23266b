// The contact sheet: a brushed part of the take sixteen times, each time with something else in it. The server computes one after another beside the run; a click makes
// one of them a take.

import type * as THREE from "three";
import { reasonOf } from "./keep";
import type { MovingFrame, SceneMessage, StatusMessage } from "./protocol";
import type { Stage } from "./stage";

export interface SheetEvents {
  send(message: object): void;
  notify(text: string, level: string): void;
  frame(): MovingFrame | null;
  /** The part of the take that is brushed, in steps. */
  range(): { from: number | null; to: number | null };
  /** Draws the characters in these poses; null: as they are. */
  pose(poses: Float32Array | null): void;
  /** The box around the characters in all of these poses. */
  boxOf(rows: Float32Array[]): THREE.Box3;
  /** What is drawn beside the characters and things, and not in the small pictures. */
  marks(): THREE.Object3D[];
}

type Of = "strength" | "delay" | "style" | "gravity" | "seed";

interface Variant {
  variation: Partial<Record<Of, number>>;
  words: string;
  button: HTMLButtonElement;
  canvas: HTMLCanvasElement;
  /** Poses, row after row, once they are there. */
  rows: Float32Array[];
  /** What its picture shows: the characters in the last of them; while it moves, from the first to the last. */
  boxes: { still: THREE.Box3; moving: THREE.Box3 } | null;
}

const COUNT = 16;
/** The part that is meant when none is brushed [s]. */
const SECOND = 1;
/** Rows of a second that moves under the mouse. */
const ROWS = 24;
const signed = (x: number) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;
/** By what is varied: the value of each picture, and how it is told. */
const VALUES: Record<Of, { value: (k: number) => number; words: (x: number) => string }> = {
  strength: { value: (k) => 0.1 * k, words: (x) => `${Math.round(100 * x)} %` },
  delay: { value: (k) => 0.04 * (k - 7.5), words: (x) => `${signed(x)} s` },
  style: { value: (k) => 10 ** (-2 + 0.15 * k), words: (x) => `× ${x.toPrecision(2)}` },
  gravity: { value: (k) => 0.125 * k, words: (x) => `${x.toFixed(2)} g` },
  seed: { value: (k) => k + 1, words: (x) => `push ${x}` },
};

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;

export class Sheet {
  private variants: Variant[] = [];
  private part: { take: number; from: number; to: number } | null = null;
  /** Which pictures are to be taken. */
  private readonly waiting: Variant[] = [];
  private hovered: { variant: Variant; since: number; row: number } | null = null;
  private status: StatusMessage | null = null;
  private asking: AbortController | null = null;
  private photos = 0;

  constructor(
    private readonly stage: Stage,
    private readonly events: SheetEvents,
  ) {
    element("variants").addEventListener("click", () => (this.shown ? this.close() : this.open()));
    element("sheet-close").addEventListener("click", () => this.close());
    element("sheet-of").addEventListener("change", () => this.open());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.shown) this.close();
    });
  }

  setScene(_scene: SceneMessage): void {
    this.close();
  }

  setStatus(status: StatusMessage): void {
    this.status = status;
  }

  private get shown(): boolean {
    return !element("sheet").hidden;
  }

  close(): void {
    this.asking?.abort();
    this.asking = null;
    this.hovered = null;
    this.waiting.length = 0;
    this.variants = [];
    element("sheet").hidden = true;
    element("variants").setAttribute("aria-expanded", "false");
  }

  /** For tests: how many variants are computed, drawn and different from one another, and the last poses of each. */
  get state(): { computed: number; drawn: number; part: object | null; last: number[][] } {
    const last = this.variants.map(({ rows }) => [...(rows.at(-1) ?? [])]);
    return { computed: this.variants.filter(({ rows }) => rows.length > 0).length, drawn: this.photos, part: this.part, last };
  }

  private open(): void {
    const frame = this.events.frame();
    if (!frame || !this.status) return;
    this.close();
    const dt = this.status.settings.dt;
    const { from, to } = this.events.range();
    const end = to ?? (from === null ? frame.end : Math.min(frame.end, from + Math.round(SECOND / dt)));
    const begin = from ?? Math.max(0, end - Math.round(SECOND / dt));
    if (end <= begin) return this.events.notify("There is nothing to vary yet: play a second, then ask for variants.", "info");
    this.part = { take: frame.take, from: begin, to: end };
    const of = element<HTMLSelectElement>("sheet-of").value as Of;
    this.photos = 0;
    this.variants = Array.from({ length: COUNT }, (_, k) => {
      const value = VALUES[of].value(k);
      return this.made({ [of]: value }, VALUES[of].words(value));
    });
    element("sheet-pictures").replaceChildren(...this.variants.map(({ button }) => button));
    element("sheet-part").textContent = `${(begin * dt).toFixed(2)} to ${(end * dt).toFixed(2)} s`;
    element("sheet").hidden = false;
    element("variants").setAttribute("aria-expanded", "true");
    void this.compute(this.variants);
  }

  private made(variation: Variant["variation"], words: string): Variant {
    const [button, canvas, told] = [document.createElement("button"), document.createElement("canvas"), document.createElement("span")];
    button.type = "button";
    button.disabled = true;
    button.className = "variant";
    button.title = "Click to keep it as a take";
    [canvas.width, canvas.height] = [160, 112];
    told.textContent = words;
    button.append(canvas, told);
    const variant: Variant = { variation, words, button, canvas, rows: [], boxes: null };
    button.addEventListener("click", () => this.take(variant));
    button.addEventListener("pointerenter", () => (this.hovered = { variant, since: performance.now(), row: -1 }));
    button.addEventListener("pointerleave", () => {
      this.hovered = null;
      if (variant.rows.length > 0) this.waiting.push(variant);
    });
    return variant;
  }

  /** Asks for one after another, so that the run beside them goes on. */
  private async compute(variants: Variant[]): Promise<void> {
    const { take, from, to } = this.part!;
    const asking = (this.asking = new AbortController());
    for (const variant of variants) {
      const words = new URLSearchParams({ from: String(from), to: String(to), every: String(Math.max(1, Math.ceil((to - from) / ROWS))) });
      for (const [name, value] of Object.entries(variant.variation)) words.set(name, String(value));
      try {
        const answer = await fetch(`variant/${take}?${words}`, { signal: asking.signal });
        if (!answer.ok) {
          variant.button.title = await reasonOf(answer);
          variant.button.classList.add("failed");
          continue;
        }
        const bytes = await answer.arrayBuffer();
        const [, , count, bodies] = new Uint32Array(bytes, 0, 4);
        const poses = new Float32Array(bytes, 16);
        variant.rows = Array.from({ length: count! }, (_, k) => poses.subarray(7 * k * bodies!, 7 * (k + 1) * bodies!));
        variant.button.disabled = false;
        this.waiting.push(variant);
      } catch {
        return; // it was closed, or the connection is lost, which is told elsewhere
      }
    }
  }

  private take({ variation }: Variant): void {
    this.events.send({ type: "variant", ...this.part, variation });
    this.close();
  }

  /** Before the picture is drawn: one small picture at a time, of the last pose; under the mouse it moves. */
  tick(): void {
    const next = this.waiting.shift();
    if (next) return this.photograph(next, next.rows.length - 1);
    const { hovered } = this;
    if (!hovered || hovered.variant.rows.length === 0 || !this.part || !this.status) return;
    const length = (this.part.to - this.part.from) * this.status.settings.dt;
    // It rests at its end for a moment before it begins again.
    const share = (((performance.now() - hovered.since) / 1000) % (length + 0.5)) / length;
    const row = Math.min(hovered.variant.rows.length - 1, Math.floor(share * hovered.variant.rows.length));
    if (row === hovered.row) return;
    hovered.row = row;
    this.photograph(hovered.variant, row);
  }

  private photograph(variant: Variant, row: number): void {
    const { rows, canvas } = variant;
    const last = rows.at(-1)!;
    variant.boxes ??= { still: this.events.boxOf([last]), moving: this.events.boxOf([rows[0]!, rows[rows.length >> 1]!, last]) };
    const box = this.hovered?.variant === variant ? variant.boxes.moving : variant.boxes.still;
    this.events.pose(rows[row]!);
    const picture = this.stage.photograph(box, canvas.width / canvas.height, this.events.marks());
    const context = canvas.getContext("2d")!;
    // The middle of the picture, in the shape of the small one.
    const width = Math.min(picture.width, (picture.height * canvas.width) / canvas.height);
    const height = (width * canvas.height) / canvas.width;
    context.drawImage(picture, 0.5 * (picture.width - width), 0.5 * (picture.height - height), width, height, 0, 0, canvas.width, canvas.height);
    this.photos++;
    this.events.pose(null);
  }
}
