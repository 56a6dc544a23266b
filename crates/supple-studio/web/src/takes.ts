// Takes: their tree, comparing, removing, undoing, and sessions that did not finish.

import { CURVE_COLOURS, drawCurves } from "./curves";
import { figure } from "./plots";
import type { AsideLine, Comparison, Curve, JournalLine, MovingFrame, StatusMessage } from "./protocol";

export interface TakesEvents {
  send(message: object): void;
  notify(text: string, level: string): void;
  /** The newest frame. */
  frame(): MovingFrame | null;
}

/** A comparison is asked for again after this time while a take grows [ms], and after ten times as long as it took. */
const REFRESH = 1500;

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

function button(text: string, label: string, press: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.title = label;
  made.setAttribute("aria-label", label);
  made.addEventListener("click", press);
  return made;
}

export class Takes {
  comparison: Comparison | null = null;
  private status: StatusMessage | null = null;
  private shownTree = "";
  private shownOffers = "";
  private asking = false;
  /** When a growing take may be asked for again. */
  private rested = 0;
  /** The takes of which a comparison was asked for, and how far they went. */
  private wanted = { takes: "", ends: "" };

  constructor(private readonly events: TakesEvents) {
    element("undo").addEventListener("click", () => events.send({ type: "undo" }));
    element("redo").addEventListener("click", () => events.send({ type: "redo" }));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  setStatus(status: StatusMessage): void {
    this.status = status;
    this.showTree(status);
    this.showHistory("undo", status.undo);
    this.showHistory("redo", status.redo);
    this.showOffers(status.journals);
    const stored = element("stored");
    stored.hidden = status.stored === null;
    stored.textContent = `Shown as stored: ${status.stored}. Anything computed from here may differ.`;
    const trouble = element("journal-trouble");
    trouble.hidden = status.journal_trouble === null;
    trouble.textContent = `The journal cannot be written: ${status.journal_trouble}. Save what you want to keep.`;
    const save = element("save-take");
    save.classList.toggle("unsaved", status.unsaved);
    save.title = status.unsaved ? "Saves all takes in one file. There are unsaved changes." : "Saves all takes in one file";
    if (this.other() === null) {
      this.comparison = null;
      this.wanted = { takes: "", ends: "" };
    }
  }

  /** Once a frame: the comparison follows the takes, its mark the present step. */
  tick(): void {
    const other = this.other();
    const frame = this.events.frame();
    element("comparison").hidden = other === null || this.comparison === null;
    if (other === null || !frame || frame.take !== this.status?.take) return;
    const takes = JSON.stringify([frame.generation, frame.take, other]);
    const ends = JSON.stringify([frame.end, this.status.takes[other]?.end]);
    const grown = ends !== this.wanted.ends && performance.now() > this.rested;
    if (!this.asking && (takes !== this.wanted.takes || grown)) {
      this.wanted = { takes, ends };
      void this.ask(frame.take, other);
    }
    if (this.comparison) this.draw(this.comparison, frame.step);
  }

  /** The take that is compared with, unless it is the present one. */
  private other(): number | null {
    const { status } = this;
    return status && status.compare !== null && status.compare !== status.take ? status.compare : null;
  }

  private async ask(take: number, other: number): Promise<void> {
    this.asking = true;
    const start = performance.now();
    try {
      const answer = await fetch(`compare/${take}/${other}`);
      if (answer.ok && this.other() === other && this.status?.take === take) this.showComparison((await answer.json()) as Comparison);
    } catch {
      // the connection is lost, which is told elsewhere
    } finally {
      this.asking = false;
      this.rested = performance.now() + Math.max(REFRESH, 10 * (performance.now() - start));
    }
  }

  private showComparison(comparison: Comparison): void {
    this.comparison = comparison;
    const name = (take: number) => this.status?.takes[take]?.name ?? `take ${take + 1}`;
    const [one, other] = comparison.takes;
    element("comparison-title").textContent = `${name(one)} against ${name(other)}, joint by joint`;
    const list = (id: string, plot: string, curves: Curve[], least: number, told: (x: number) => string) => {
      const seen = curves.filter((curve) => curve.largest > least);
      element(plot).hidden = seen.length === 0;
      element(id).replaceChildren(
        ...seen.map((curve, k) => {
          const item = document.createElement("li");
          const colour = document.createElement("span");
          colour.className = "colour";
          colour.style.background = CURVE_COLOURS[k]!;
          const value = document.createElement("output");
          value.textContent = told(curve.largest);
          item.append(colour, curve.name, value);
          return item;
        }),
      );
      if (seen.length === 0) element(id).textContent = `No joint differs by more than ${told(least)}, the precision at which takes are stored.`;
    };
    list("angle-joints", "difference-angles", comparison.angles, comparison.resolution.angle, degrees);
    list("shift-joints", "difference-shifts", comparison.shifts, comparison.resolution.shift, metres);
  }

  private draw({ first, last, steps_per_column, angles, shifts, resolution }: Comparison, step: number): void {
    const mark = step < first || step > last ? null : (step - first) / steps_per_column;
    const seen = (curves: Curve[], least: number) => curves.filter((curve) => curve.largest > least);
    drawCurves(element("difference-angles"), seen(angles, resolution.angle), mark, degrees);
    drawCurves(element("difference-shifts"), seen(shifts, resolution.shift), mark, metres);
  }

  private showTree(status: StatusMessage): void {
    const key = JSON.stringify([status.takes, status.take, status.compare, status.aside]);
    if (key === this.shownTree) return;
    this.shownTree = key;
    const active = document.activeElement;
    const focused = active instanceof HTMLElement ? active.dataset.key : undefined;
    element("takes").replaceChildren(...this.aside(status.aside), this.branch(status, null));
    if (focused) document.querySelector<HTMLElement>(`[data-key="${focused}"]`)?.focus();
  }

  /** Takes of the rig before and after edits, each marked with its edit. */
  private aside(lines: AsideLine[]): HTMLElement[] {
    return lines.map((line) => {
      const items = document.createElement("ul");
      items.className = "aside";
      const mark = document.createElement("li");
      mark.className = "faint";
      mark.textContent = `${line.mark}:`;
      items.append(mark);
      line.takes.forEach((take, k) => {
        if (!take) return;
        const item = document.createElement("li");
        const go = button(take.name, `Go to the end of ${take.name}, ${line.mark}`, () => {
          this.events.send({ type: "aside", sheet: line.sheet, take: k });
        });
        go.dataset.aside = `${line.sheet}-${k}`;
        item.append(go);
        items.append(item);
      });
      return items;
    });
  }

  /** The takes that left one, with those that left them. */
  private branch(status: StatusMessage, parent: number | null): HTMLUListElement {
    const items = document.createElement("ul");
    status.takes.forEach((take, k) => {
      if (!take || take.parent !== parent) return;
      const item = document.createElement("li");
      const row = document.createElement("div");
      row.className = "take";
      const go = button(take.name, `Go to the end of ${take.name}`, () => {
        this.events.send({ type: "seek", take: k, step: this.endOf(k) });
      });
      go.dataset.take = go.dataset.key = String(k);
      if (k === status.take) go.setAttribute("aria-current", "true");
      row.append(go);
      if (parent !== null) {
        const from = document.createElement("span");
        from.className = "faint";
        from.textContent = `from step ${take.first}`;
        row.append(from);
      }
      const space = document.createElement("span");
      space.className = "space";
      row.append(space);
      if (k !== status.take) {
        const on = status.compare === k;
        const compare = button("Compare", on ? `Stop comparing with ${take.name}` : `Compare with ${take.name}`, () => {
          this.events.send({ type: "compare", take: on ? null : k });
        });
        compare.dataset.compare = String(k);
        compare.dataset.key = `compare-${k}`;
        compare.setAttribute("aria-pressed", String(on));
        row.append(compare);
      }
      if (parent !== null) {
        const forks = status.takes.some((other) => other?.parent === k) ? " and all that left it" : "";
        const remove = button("Delete", `Delete ${take.name}${forks} (Ctrl+Z brings it back)`, () => {
          this.events.send({ type: "delete", take: k });
        });
        remove.dataset.delete = String(k);
        remove.dataset.key = `delete-${k}`;
        row.append(remove);
      }
      item.append(row);
      const inner = this.branch(status, k);
      if (inner.children.length > 0) item.append(inner);
      items.append(item);
    });
    return items;
  }

  private endOf(take: number): number {
    const frame = this.events.frame();
    return frame?.take === take ? frame.end : (this.status?.takes[take]?.end ?? 0);
  }

  private showHistory(id: "undo" | "redo", label: string | null): void {
    const control = element<HTMLButtonElement>(id);
    const verb = id === "undo" ? "Undo" : "Redo";
    control.disabled = label === null;
    control.title = label === null ? `Nothing to ${id}` : `${verb} ${label} (Ctrl+${id === "undo" ? "" : "Shift+"}Z)`;
    control.setAttribute("aria-label", control.title);
  }

  /** Sessions that did not finish: each can be taken up again, or thrown away. */
  private showOffers(journals: JournalLine[]): void {
    const key = JSON.stringify(journals);
    if (key === this.shownOffers) return;
    this.shownOffers = key;
    const offers = journals.map((line) => {
      const offer = document.createElement("div");
      offer.className = "notice offer";
      const text = document.createElement("span");
      const takes = line.takes === 1 ? "1 take" : `${line.takes} takes`;
      text.textContent = `A session was cut short: ${line.scene}, ${takes}, ${line.seconds.toFixed(1)} s, ${ago(line.written)}.`;
      const recover = button("Recover", "Open it in place of the present scene", () => {
        this.events.send({ type: "recover", journal: line.journal });
      });
      // What is thrown away here does not come back: it is asked twice.
      const discard = button("Discard", "Throw it away", () => {
        if (discard.dataset.sure) return this.events.send({ type: "discard", journal: line.journal });
        discard.dataset.sure = "yes";
        discard.textContent = "Discard for good";
      });
      offer.append(text, recover, discard);
      return offer;
    });
    element("offers").replaceChildren(...offers);
  }

  private key(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || document.querySelector("dialog[open]")) return;
    if ((event.target as HTMLElement).matches("input[type=text]")) return; // there it undoes what was typed
    const key = event.key.toLowerCase();
    const way = key === "y" || (key === "z" && event.shiftKey) ? "redo" : key === "z" ? "undo" : null;
    if (!way) return;
    event.preventDefault();
    const label = this.status?.[way];
    if (!label) return this.events.notify(`There is nothing to ${way}.`, "info");
    this.events.send({ type: way });
    this.events.notify(`${way === "undo" ? "Undone" : "Redone"}: ${label}`, "info");
  }
}

function degrees(x: number): string {
  return `${Number(((x * 180) / Math.PI).toPrecision(3))}°`;
}

function metres(x: number): string {
  return figure(x, "m");
}

function ago(written: number): string {
  const minutes = Math.floor((Date.now() / 1000 - written) / 60);
  if (minutes < 1) return "just now";
  if (minutes < 120) return `${minutes} min ago`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h ago` : `${Math.floor(minutes / 1440)} days ago`;
}
