// The start page: built-in scenes in pictures, files that were opened before, and tours that are done by doing.

import type { SceneMessage, StatusMessage, MovingFrame } from "./protocol";

export interface GalleryEvents {
  send(message: object): void;
  scene(): SceneMessage | null;
  status(): StatusMessage | null;
  frame(): MovingFrame | null;
}

/** What the server tells of a start without a scene. */
interface Start {
  gallery: boolean;
  recent: { name: string; folder: string }[];
}

/** What people like to see first. */
const FIRST = ["ragdoll", "hand", "robot", "deer", "worm", "fish", "snake", "soft_hand", "car", "walker", "pile", "grasp"];

interface Task {
  text: string;
  /** Whether it is done. */
  done(events: GalleryEvents): boolean;
}

/** A tour: a scene, and what one does in it. */
const TOURS: { name: string; scene: string; says: string; tasks: Task[] }[] = [
  {
    name: "Pull it",
    scene: "robot",
    says: "Grab a limb, stop time, go back",
    tasks: [
      { text: "Drag a limb of the robot with the mouse.", done: ({ frame }) => frame()?.drags.some(({ puller }) => puller === 1) ?? false },
      { text: "Let go, and press Space: time stops.", done: ({ status, frame }) => status()?.playing === false && (frame()?.step ?? 0) > 0 },
      { text: "Drag the slider at the bottom to the left: every moment is kept.", done: ({ frame }) => (frame()?.step ?? 0) + 5 < (frame()?.end ?? 0) },
      { text: "Pull a limb now: another take starts here.", done: ({ status }) => (status()?.takes.filter(Boolean).length ?? 0) > 1 },
    ],
  },
  {
    name: "Let it fall",
    scene: "robot",
    says: "A ragdoll, and back again",
    tasks: [
      { text: "Press L: the robot goes loose and falls.", done: ({ status }) => status()?.tones.bodies.every((s) => s === "loose") ?? false },
      { text: "Press L again: it is carried back.", done: ({ status }) => status()?.tones.bodies.every((s) => s !== "loose") ?? false },
      { text: "Press F: the camera frames it.", done: () => framed },
      { text: "Undo with Ctrl+Z.", done: ({ status }) => Boolean(status()?.redo) },
    ],
  },
  {
    name: "Throw things",
    scene: "robot",
    says: "Stairs, a cannon, a take to keep",
    tasks: [
      { text: "Open Things in the panel and click Stairs.", done: ({ scene }) => scene()?.things.some(({ kind }) => kind === "stairs") ?? false },
      { text: "Press J, then click on the robot: the cannon throws a ball at it.", done: ({ scene, status }) => (scene()?.things.length ?? 0) > 1 && (status()?.takes.filter(Boolean).length ?? 0) > 1 },
      { text: "Press J again to put the cannon away.", done: () => document.getElementById("cannon")!.getAttribute("aria-pressed") === "false" },
      { text: "Click Save takes: everything goes into one file.", done: ({ status }) => status()?.unsaved === false },
    ],
  },
];
let framed = false;

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;

export class Gallery {
  private shownScenes = 0;
  /** The scene behind the start page, by its number; null: it is not known yet. */
  private behind: number | null = null;
  /** The run waits behind the start page. */
  private waits = false;
  private recents: Start["recent"] = [];
  private tour: { tasks: Task[]; at: number; begun: number; opens: string | null } | null = null;

  constructor(private readonly events: GalleryEvents) {
    element("gallery-button").addEventListener("click", () => this.show(element("gallery").hidden));
    element("gallery-close").addEventListener("click", () => this.show(false));
    element("tour-end").addEventListener("click", () => this.end());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !element("gallery").hidden) this.show(false);
      if (event.key.toLowerCase() === "f") framed = true;
    });
    element("tours").replaceChildren(...TOURS.map((tour, k) => card(tour.name, tour.says, () => this.begin(k))));
    void this.ask();
  }

  private async ask(): Promise<void> {
    try {
      const answer = await fetch("start");
      if (!answer.ok) return;
      const start = (await answer.json()) as Start;
      this.recents = start.recent;
      this.showRecent();
      if (start.gallery && !new URLSearchParams(location.search).has("nogallery")) this.show(true);
    } catch {
      // the connection is lost, which is told elsewhere
    }
  }

  show(on: boolean): void {
    element("gallery").hidden = !on;
    document.body.classList.toggle("starting", on);
    if (!on && this.waits) this.events.send({ type: "play" });
    this.waits = false;
    element("gallery-button").setAttribute("aria-expanded", String(on));
    this.behind = on ? (this.events.scene()?.generation ?? null) : null;
    if (on) {
      this.setScene();
      element("gallery").focus();
    }
  }

  /** The scenes are known from the first scene message on. Whatever is opened after that, a file that was dropped too, is what one wants to see. */
  setScene(): void {
    const generation = this.events.scene()?.generation ?? null;
    if (!element("gallery").hidden && this.behind !== null && generation !== this.behind) this.show(false);
    this.behind = generation;
    const all = this.events.scene()?.scenes ?? [];
    const place = ({ name }: { name: string }) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
    const scenes = all.slice().sort((a, b) => place(a) - place(b));
    if (this.shownScenes === scenes.length || element("gallery").hidden) return;
    this.shownScenes = scenes.length;
    element("gallery-scenes").replaceChildren(
      ...scenes.map(({ name, summary }) => {
        // Where it comes from is for the papers' readers (docs/papers.md), and parameters stand beside the scene.
        const made = card(name.replaceAll("_", " "), summary.replace(/ *\[[^\]]*\]/g, "").replace(/; \w+=.*$/, ""), () => this.open(name));
        const picture = document.createElement("div");
        picture.className = "moving";
        for (const [theme, end] of [["light", ""], ["dark", "-dark"]]) {
          // Without its whole address it would be looked for beside the style sheet.
          const { href } = new URL(`gallery/${name}${end}.jpg`, location.href);
          picture.style.setProperty(`--${theme}`, `url("${href}")`);
        }
        made.prepend(picture);
        return made;
      }),
    );
  }

  private showRecent(): void {
    element("gallery-recent").hidden = this.recents.length === 0;
    element("recent").replaceChildren(
      ...this.recents.map(({ name, folder }, k) =>
        card(name, folder, () => {
          this.events.send({ type: "recent", file: k });
          this.show(false);
        }),
      ),
    );
  }

  private open(name: string): void {
    this.events.send({ type: "open", scene: name });
    this.show(false);
  }

  private begin(k: number): void {
    const { scene, tasks } = TOURS[k]!;
    framed = false;
    this.tour = { tasks, at: 0, begun: this.events.scene()?.generation ?? 0, opens: scene };
    this.open(scene);
    this.events.send({ type: "play" });
  }

  private end(): void {
    this.tour = null;
    element("tour").hidden = true;
  }

  /** Once a frame: whether the task at hand is done. */
  tick(): void {
    if (!element("gallery").hidden && !this.waits && this.events.frame() && this.events.status()?.playing) {
      this.waits = true;
      this.events.send({ type: "pause" });
    }
    const { tour } = this;
    if (!tour) return;
    if (tour.opens !== null) {
      // The tour begins with its scene.
      const scene = this.events.scene();
      if (!scene || scene.generation === tour.begun || scene.name !== tour.opens || !this.events.frame()) return;
      tour.opens = null;
      this.tell();
    }
    const task = tour.tasks[tour.at];
    if (!task) return;
    if (task.done(this.events)) {
      tour.at++;
      this.tell();
    }
  }

  private tell(): void {
    const { at, tasks } = this.tour!;
    element("tour").hidden = false;
    const task = tasks[at];
    element("tour-text").textContent = task ? task.text : "Done. That is all there is to it.";
    element("tour-place").textContent = task ? `${at + 1} of ${tasks.length}` : "";
    element("tour-end").textContent = task ? "End the tour" : "Close";
  }
}

function card(name: string, says: string, press: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "card";
  const title = document.createElement("strong");
  title.textContent = name;
  const line = document.createElement("span");
  line.textContent = says;
  made.append(title, line);
  made.addEventListener("click", press);
  return made;
}

