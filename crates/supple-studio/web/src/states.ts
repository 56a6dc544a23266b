// The clip that the character follows, how it holds itself, and the marks on the slider of time.

import type { Mark, MovingFrame, PlayedClip, SceneMessage, StatusMessage } from "./protocol";

export interface StatesEvents {
  send(message: object): void;
  notify(text: string, level: string): void;
  frame(): MovingFrame | null;
  chosen(): number | null;
  /** The chosen body and all that hang on it. */
  limb(): number[];
}

type State = "posed" | "follow" | "loose" | "limp" | "scene";

/** What each state means, as it is told below the buttons: of the whole character, and of a limb. */
const MEANS: Record<State, [string, string]> = {
  posed: ["It holds its pose. Springs carry it.", "It holds its pose."],
  follow: ["It follows its clip. Springs carry it.", "It follows the clip."],
  loose: ["A ragdoll with some life in it. Nothing carries it.", "It hangs loose, with some life in it."],
  limp: ["A ragdoll without any strength. Nothing carries it.", "It hangs limp, without any strength."],
  scene: ["It moves as its scene does.", "It moves as its scene does."],
};
/** And while it changes. */
const CHANGES: Record<string, string> = {
  posed: "It is carried into its pose",
  start: "It is carried back to its starting pose",
  follow: "It is carried to its clip",
  loose: "It is being let go",
  limp: "It is being let go",
  scene: "It is carried back to what its scene does",
};
/** How fast it is let go, and carried back, unless told otherwise [s]. */
const LET_GO = 0.1;
const CARRY = 0.7;

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}
const input = (id: string) => element<HTMLInputElement>(id);

export class States {
  private scene: SceneMessage | null = null;
  private status: StatusMessage | null = null;
  private shownMarks = "";
  /** The step that the words are of. */
  private toldStep = -1;
  /** Whose clips the menu lists. */
  private listed = "";
  private readonly buttons = [...document.querySelectorAll<HTMLButtonElement>("[data-state]")];

  constructor(private readonly events: StatesEvents) {
    for (const button of this.buttons) button.addEventListener("click", () => this.change(button.dataset.state as State));
    element("state-start").addEventListener("click", () => this.ask("start", CARRY));
    element("state-of").addEventListener("change", () => this.show());
    const clip = element<HTMLSelectElement>("clip");
    clip.addEventListener("change", () => this.choose(clip.value));
    input("clip-again").addEventListener("change", () => events.send({ type: "clip", again: input("clip-again").checked, figure: this.figure() }));
    input("clip-speed").addEventListener("change", () => {
      const speed = input("clip-speed").valueAsNumber;
      if (Number.isFinite(speed)) events.send({ type: "clip", speed, figure: this.figure() });
    });
    for (const id of ["hits", "hit-impulse", "hit-recovery"]) input(id).addEventListener("change", () => this.setHits());
    input("state-strength").addEventListener("input", () => {
      element("state-strength-value").textContent = `${Math.round(100 * input("state-strength").valueAsNumber)} %`;
    });
    input("state-strength").addEventListener("change", () => this.setStrength());
    element("add-mark").addEventListener("click", () => this.addMark());
    input("mark-name").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.addMark();
    });
  }

  setScene(scene: SceneMessage): void {
    this.scene = scene;
    element("add-motion-label").hidden = !scene.rig;
    this.listed = "";
    this.listClips();
  }

  /** Whose state and clip the panel shows: the character that the chosen limb is of. */
  private figure(): number {
    const chosen = this.events.chosen();
    if (chosen === null || !this.scene) return 0;
    return 1 + this.scene.guests.findIndex(({ first, count }) => chosen >= first && chosen < first + count);
  }

  private clips(): SceneMessage["clips"] {
    const figure = this.figure();
    return (figure === 0 ? this.scene?.clips : this.scene?.guests[figure - 1]?.clips) ?? [];
  }

  private played(): PlayedClip | null {
    const figure = this.figure();
    const tones = this.status?.tones;
    return (figure === 0 ? tones?.clip : tones?.guest_clips[figure - 1]) ?? null;
  }

  private listClips(): void {
    const clips = this.clips();
    const key = JSON.stringify([this.scene?.generation, this.figure()]);
    if (key === this.listed) return;
    this.listed = key;
    element("clips").hidden = clips.length === 0 && !this.scene?.rig;
    const options = clips.map((clip) => new Option(`${clip.name} · ${clip.seconds.toFixed(1)} s`, clip.name));
    element("clip").replaceChildren(new Option("no clip", ""), ...options);
  }

  setStatus(status: StatusMessage): void {
    this.status = status;
    this.show();
  }

  /** L: lets it go, or carries it back. */
  letGo(): void {
    if (this.now() !== "loose" && this.now() !== "limp") return this.ask("loose", LET_GO);
    this.carryBack();
  }

  private carryBack(): void {
    if (this.played()) return this.ask("follow", CARRY);
    // A character of a file has springs to every bone; a built-in scene has its own script.
    this.ask(this.isCharacter() ? "start" : "scene", CARRY);
  }

  private isCharacter(): boolean {
    return (this.scene?.bones.length ?? 0) > 0 || this.figure() > 0;
  }

  private firstState(): string {
    return this.isCharacter() ? "Posed" : "Scene";
  }

  /** The bodies that the buttons mean; none: all. */
  private bodies(): number[] {
    const chosen = this.events.chosen();
    const of = element<HTMLSelectElement>("state-of").value;
    const figure = this.status?.tones.bodies.length ?? 0; // things have no state
    if (chosen === null || chosen >= figure) return [];
    // Of several characters the one that is chosen is meant.
    if (of === "all") return this.scene?.guests.length ? this.own() : [];
    return of === "limb" ? this.events.limb().filter((body) => body < figure) : [chosen];
  }

  /** The bodies of the character that is meant. */
  private own(): number[] {
    const guests = this.scene?.guests ?? [];
    const guest = guests[this.figure() - 1];
    const [first, count] = guest ? [guest.first, guest.count] : [0, guests[0]?.first ?? this.status?.tones.bodies.length ?? 0];
    return Array.from({ length: count }, (_, k) => first + k);
  }

  /** The state that all meant bodies are in; null when they differ. */
  private now(): State | null {
    const tones = this.status?.tones.bodies ?? [];
    const meant = this.bodies();
    // A character that was never told otherwise is posed.
    const told = (meant.length ? meant.map((body) => tones[body]) : tones).map((tone) => (tone === "scene" && this.isCharacter() ? "posed" : tone));
    const states = new Set(told);
    return states.size === 1 ? ([...states][0] as State) : null;
  }

  private change(state: State): void {
    if (state === "follow" && !this.played() && this.clips().length === 0) {
      return this.events.notify("This scene has no clip to follow.", "info");
    }
    if (state === "posed" && !this.isCharacter()) return this.ask("scene", CARRY, []);
    this.ask(state, state === "loose" || state === "limp" ? LET_GO : CARRY);
  }

  private ask(state: string, usual: number, bodies = this.bodies()): void {
    const told = input("blend").valueAsNumber;
    const strength = input("state-strength").valueAsNumber;
    const carried = state === "posed" || state === "follow" || state === "start";
    this.events.send({ type: "state", state, bodies, blend: Number.isFinite(told) ? told : usual, strength: carried ? strength : 1 });
  }

  /** Another strength for those that are carried. */
  private setStrength(): void {
    const state = this.now();
    if (state === "follow" || state === "posed") this.ask(state, CARRY);
  }

  private setHits(): void {
    const numbers = [input("hit-impulse").valueAsNumber, input("hit-recovery").valueAsNumber];
    const on = input("hits").checked && numbers.every(Number.isFinite);
    this.events.send({ type: "hits", hits: on ? numbers : null });
  }

  /** A clip from the menu. What follows one already goes over to it; anything else begins in its first pose. */
  private choose(name: string): void {
    if (!name) return;
    const figure = this.figure();
    const follows = this.own().every((body) => this.status?.tones.bodies[body] === "follow");
    const fade = input("clip-fade").valueAsNumber;
    if (follows || figure > 0) this.events.send({ type: "clip", clip: name, fade: Number.isFinite(fade) ? fade : 0.3, figure });
    else this.events.send({ type: "clip", clip: name });
  }

  private addMark(): void {
    const name = input("mark-name").value.trim() || `${(this.events.frame()?.time ?? 0).toFixed(2)} s`;
    input("mark-name").value = "";
    this.events.send({ type: "mark", name });
  }

  show(): void {
    const { status, scene } = this;
    if (!status || !scene) return;
    const { tones } = status;
    this.listClips();
    const clip = this.played();
    const chosen = this.events.chosen();
    element("state-whose").hidden = chosen === null;
    const state = this.now();
    for (const button of this.buttons) {
      // What is no character of a file is given back to the script of its scene.
      if (button.dataset.state === "posed" && button.textContent !== this.firstState()) {
        button.textContent = this.firstState();
        button.title = this.isCharacter() ? "Holds the pose it is in" : "As its scene moves it";
      }
      const own = button.dataset.state === "posed" ? state === "posed" || state === "scene" : button.dataset.state === state;
      button.setAttribute("aria-pressed", String(own));
      if (button.dataset.state === "follow") button.disabled = !clip && this.clips().length === 0;
    }
    this.tell();
    element("state-start").hidden = !this.isCharacter();
    element<HTMLSelectElement>("clip").value = clip?.name ?? "";
    input("clip-again").disabled = input("clip-speed").disabled = clip === null;
    input("clip-again").checked = clip?.again ?? false;
    if (document.activeElement !== input("clip-speed")) input("clip-speed").value = String(clip?.speed ?? 1);
    input("hits").checked = tones.hits !== null;
    this.showMarks(status.marks);
  }

  /** What is true of what the buttons mean, at the present step. */
  private tell(): void {
    const { status, scene } = this;
    if (!status || !scene) return;
    const words = this.changing() ?? this.still();
    if (element("state-words").textContent !== words) element("state-words").textContent = words;
  }

  private still(): string {
    const state = this.now();
    const meant = this.bodies();
    const limb = meant.length > 0 && meant.length < this.own().length;
    const words = state === null ? "Its limbs are in different states." : MEANS[state][limb ? 1 : 0];
    // Of several characters it is not told whose mass is carried.
    const carried = this.scene!.guests.length ? 100 : Math.round(100 * this.status!.tones.carried);
    return (limb || state === null) && carried < 100 ? `${words} ${carried} % of the character is carried.` : words;
  }

  /** The words for a change that is under way, from its mark. */
  private changing(): string | null {
    const frame = this.events.frame();
    if (!frame) return null;
    const meant = this.bodies();
    const concerns = (bodies: number[] | undefined) => !bodies?.length || meant.length === 0 || bodies.some((body) => meant.includes(body));
    const mark = this.status!.marks.findLast(({ step, what }) => step <= frame.step && what?.mark === "state" && concerns(what.bodies));
    if (!mark || mark.what?.mark !== "state") return null;
    const left = mark.what.blend - (frame.step - mark.step) * this.status!.settings.dt;
    if (left <= 1e-9 || frame.step === 0) return null;
    const words = CHANGES[mark.what.state] ?? "It changes";
    return left < 0.1 ? `${words}.` : `${words}: ${left.toFixed(1)} s to go.`;
  }

  /** Marks beside the slider of time, where its thumb stands at their step. */
  private showMarks(marks: Mark[]): void {
    const end = Math.max(1, Number(input("time").max));
    const key = JSON.stringify([marks, end]);
    if (key === this.shownMarks) return;
    this.shownMarks = key;
    const list = element("marks");
    list.hidden = marks.length === 0;
    list.replaceChildren(
      ...marks.map((mark, k) => {
        const flag = document.createElement("button");
        flag.type = "button";
        flag.className = "mark";
        const name = this.nameOf(mark);
        flag.textContent = name;
        flag.title = `${name}, step ${mark.step}. Click to go there, Delete to remove it.`;
        flag.style.left = `${Math.min(100, (100 * mark.step) / end)}%`;
        flag.addEventListener("click", () => {
          const frame = this.events.frame();
          if (frame && mark.step <= frame.end) this.events.send({ type: "seek", take: frame.take, step: mark.step });
        });
        flag.addEventListener("keydown", (event) => {
          if (event.key === "Delete") this.events.send({ type: "unmark", mark: k });
        });
        return flag;
      }),
    );
  }

  /** The slider of time grew. */
  tick(): void {
    const step = this.events.frame()?.step ?? -1;
    if (step !== this.toldStep) {
      this.toldStep = step;
      this.tell();
    }
    if (this.status?.marks.length) this.showMarks(this.status.marks);
  }

  private nameOf({ what }: Mark): string {
    switch (what?.mark) {
      case "state": {
        // Of a limb, the bone that it begins with.
        const first = what.bodies?.length ? this.scene?.bodies[what.bodies[0]!]?.name : undefined;
        return first === undefined || what.bodies!.includes(0) ? what.state : `${what.state}: ${first}`;
      }
      case "clip":
        return what.clip;
      case "hits":
      case "no_hits":
        return "hits";
      case "marker":
        return what.name;
      default:
        return "?";
    }
  }
}
