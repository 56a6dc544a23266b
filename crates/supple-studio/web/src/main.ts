// The studio's page: the latest frame of the server, drawn; what hands do, sent.

import * as THREE from "three";
import { Character } from "./character";
import { Cones, floorOf, Obstacles } from "./contacts";
import { Direct } from "./direct";
import { Figure } from "./figure";
import { FleshView } from "./flesh";
import { Gizmos } from "./gizmos";
import { frontOf } from "./front";
import { Gallery } from "./gallery";
import { Heat } from "./heat";
import { Instruments } from "./instruments";
import { Lines } from "./lines";
import { Link } from "./link";
import { readFile } from "./load";
import { Marks } from "./marks";
import { Overlay } from "./overlay";
import { Pins } from "./pins";
import { Panel, type Layer } from "./panel";
import { figure as written } from "./plots";
import { JOINT, PROTOCOL, type FileMessage, type MovingFrame, type SceneMessage, type StatusMessage } from "./protocol";
import { planeAxis, Pull } from "./pull";
import { Sheet } from "./sheet";
import { SoftView } from "./soft";
import { States } from "./states";
import { MOVING_ROOM, Stage, type View } from "./stage";
import { Takes } from "./takes";
import { Touch, type Tool } from "./touch";
import { Things } from "./things";
import { Timeline } from "./timeline";
import { Twins } from "./twins";

// `?noaa` and `?noshadow` make the picture cheaper, for machines that draw without a graphics card; so does `?noroom`, which has a plain sky for the light of
// the room. Without shadows there is no room either, unless `?room` asks for it.
const query = new URLSearchParams(location.search);
const canvas = document.getElementById("view") as HTMLCanvasElement;
const shadows = !query.has("noshadow");
const stage = new Stage(canvas, { antialias: !query.has("noaa"), shadows, room: query.has("room") || (shadows && !query.has("noroom")) });
const label = document.getElementById("label") as HTMLElement;
const forceLabel = document.getElementById("force") as HTMLElement;
const troubleLabel = document.getElementById("trouble") as HTMLElement;

let scene: SceneMessage | null = null;
let status: StatusMessage | null = null;
let latest: MovingFrame | null = null;
/** The frame of another step before it. */
let before: MovingFrame | null = null;
let fresh = false;
let figure: Figure | null = null;
let character: Character | null = null;
/** Characters beside it, and after them things of files, as they are drawn. */
let guests: Character[] = [];
let seenGuests = 0;
/** Its file is on its way. */
let loading = false;
let flesh: FleshView | null = null;
let soft: SoftView | null = null;
let lines: Lines | null = null;
let overlay: Overlay | null = null;
let obstacles: Obstacles | null = null;
const cones = new Cones();
const marks = new Marks();
stage.scene.add(cones.group, marks.points);
let hovered: number | null = null;
/** The body that is red. */
let marked: number | null = null;
let weight = 1;
let frames = 0;
const cost = { script: 0, draw: 0 };
/** When the first picture with all there is to draw was there, after the call of the page [ms]. */
let firstPicture: number | null = null;
/** Whether it is there; null: it was not asked for yet. */
let firstDone: (() => boolean) | null = null;
let offline = false;
let greeted = false;
/** The run waits for the first picture. */
let waits = false;
let heats: Record<"gaps" | "loads" | "strain" | "displacement" | "pressure", Heat> | null = null;
const layers: Record<Layer, boolean> = {
  shapes: true,
  bones: false,
  axes: false,
  limits: false,
  forces: true,
  ghost: false,
  gaps: false,
  loads: false,
  contacts: false,
  skin: true,
  cage: false,
  strain: false,
  displacement: false,
  pressure: false,
  proxies: false,
  tested: false,
  twin: false,
};
const instruments = new Instruments();
const twins = new Twins(stage);

const link: Link = new Link({
  scene: setScene,
  status(message) {
    // What is let go falls, and would leave the picture: one looks along.
    const lets = (status?.tones.carried ?? 0) > 0 && message.tones.carried === 0 && status?.generation === message.generation;
    if (lets && message.playing && !following) followNow(true, true);
    status = message;
    panel.setStatus(message);
    takes.setStatus(message);
    timeline.setStatus(message);
    sheet.setStatus(message);
    direct.setStatus(message);
    states.setStatus(message);
    greet(message);
    fresh = true;
  },
  frame(frame) {
    if (frame.generation !== scene?.generation) return;
    if (latest && latest.step !== frame.step) before = latest.generation === frame.generation && latest.poses.length === frame.poses.length ? latest : null;
    latest = panel.frame = frame;
    instruments.add(frame);
    timeline.add(frame);
    fresh = true;
  },
  error: (message) => panel.notify(message.message, "error"),
  connected(yes) {
    if (!yes && !offline) panel.notify("The connection to supple is lost. The page tries again every second.", "error");
    if (yes && offline) panel.notify("Connected again.", "info");
    offline = !yes;
  },
  locked(why) {
    const note = document.getElementById("locked") as HTMLElement;
    note.hidden = why === null;
    note.textContent = why === null ? "" : `supple refused this page: ${why}.`;
  },
});

const panel: Panel = new Panel({
  send(message) {
    // Whoever pauses before the first picture means it.
    if ("type" in message && (message.type === "play" || message.type === "pause")) waits = false;
    link.send(message);
  },
  layer(layer, visible) {
    layers[layer] = visible;
    applyLayers();
  },
  chosen() {
    direct.showBone();
    states.show();
    things.choose();
    fresh = true;
  },
  frame: () => frameChosen(),
  letGo: () => states.letGo(),
  tool: (tool) => take(touch.tool === tool ? "pull" : tool),
  meant: () => hovered ?? panel.chosen,
}, instruments);

/** Whoever asks the system for less motion meets a character at rest. */
function greet(message: StatusMessage): void {
  if (greeted) return;
  greeted = true;
  if (!message.playing) return;
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) return void (waits = true);
  link.send({ type: "pause" });
  panel.notify("Paused, because your system asks for less motion. Space plays.", "info");
}

const takes: Takes = new Takes({
  send: (message) => link.send(message),
  notify: (text, level) => panel.notify(text, level),
  frame: () => latest,
});

const direct: Direct = new Direct({
  send: (message) => link.send(message),
  notify: (text, level) => panel.notify(text, level),
  frame: () => latest,
  chosen: () => panel.chosen,
});

const states: States = new States({
  send: (message) => link.send(message),
  notify: (text, level) => panel.notify(text, level),
  frame: () => latest,
  chosen: () => panel.chosen,
  limb: () => panel.limb(),
});

const things: Things = new Things(canvas, stage, {
  send: (message) => link.send(message),
  notify: (text, level) => panel.notify(text, level),
  frame: () => latest,
  chosen: () => panel.chosen,
  clip: () => status?.tones.clip?.name ?? null,
  box: () => boxNow(null),
  show: (box) => (coming = box),
  hit: (ray) => figure?.pick(ray)?.point ?? null,
});

const timeline: Timeline = new Timeline(stage, {
  notify: (text, level) => panel.notify(text, level),
  frame: () => latest,
  chosen: () => panel.chosen,
  drawn: () => (character?.present && !soft ? [character, ...guests] : []),
});

// Before the camera and the pulls, so that a handle takes the mouse first.
const gizmos: Gizmos = new Gizmos(canvas, stage, {
  send: (message) => link.send(message),
  chosen: () => panel.chosen,
  shown: () => ({ limits: layers.limits, shapes: layers.shapes }),
  worldOf: (body) => figure!.worldOf(body),
  tell(text, x, y) {
    label.hidden = text === null;
    if (text === null) return;
    label.textContent = text;
    label.style.left = `${x}px`;
    label.style.top = `${y}px`;
  },
});
stage.scene.add(gizmos.group);
const pins = new Pins(canvas, stage, { send: (message) => link.send(message), status: () => status });
stage.scene.add(pins.group);

const sheet: Sheet = new Sheet(stage, {
  send: (message) => link.send(message),
  notify: (text, level) => panel.notify(text, level),
  frame: () => latest,
  range: () => timeline.range,
  pose(poses) {
    if (!figure || !latest) return;
    figure.move(poses ? { ...latest, poses } : latest);
    for (const drawn of [character, ...guests]) drawn?.move(figure.worlds);
  },
  boxOf(rows) {
    const box = new THREE.Box3();
    if (!figure || !latest) return box;
    for (const poses of rows) {
      figure.move({ ...latest, poses });
      box.union(figure.boxNow(null));
    }
    figure.move(latest);
    return box;
  },
  marks: () => [timeline.group, pins.group, gizmos.group, marks.points, cones.group, ...(lines ? [lines.group] : []), ...(overlay ? [overlay.group] : [])],
});

const gallery: Gallery = new Gallery({
  send(message) {
    if ("type" in message && message.type === "pause") waits = false;
    link.send(message);
  },
  scene: () => scene,
  status: () => status,
  frame: () => latest,
});

const touch: Touch = new Touch(canvas, stage, {
  send: (message) => link.send(message),
  strength: () => panel.strength,
  sized: showTool,
});
stage.scene.add(touch.preview);

const pull: Pull = new Pull(canvas, stage, {
  pull: (body, point, target, rotation) => sendPull(0, body, point, target, rotation),
  turns: () => status !== null && (status.settings.pose || status.settings.control.mode !== "off"),
  turnsAbout: (body) => scene && planeAxis(scene, body),
  release: () => link.send({ type: "release", pointer: 0 }),
  ready: () => !touch.active && !things.busy && ((scene?.thing_bodies ?? 0) > 0 || layers.shapes || (layers.skin && (flesh !== null || (character?.present ?? false)))),
  speed(body) {
    if (!latest || !before || latest.time <= before.time) return 0;
    const [a, b] = [before.poses, latest.poses].map((poses) => new THREE.Vector3().fromArray(poses, 7 * body));
    return a!.distanceTo(b!) / (latest.time - before.time);
  },
  choose(body) {
    hintDone();
    panel.choose(body);
  },
  hover(body, x, y) {
    hovered = body;
    canvas.style.cursor = body === null ? "" : "grab";
    label.hidden = body === null;
    if (body !== null) {
      label.textContent = describe(body);
      label.style.left = `${x}px`;
      label.style.top = `${y}px`;
    }
    fresh = true;
  },
});

// The first hint, until the first thing is done; a browser that remembers it shows it once.
const hint = document.getElementById("hint") as HTMLElement;
const HINTED = "supple-hinted";
const remembered = (): string | null => {
  try {
    return localStorage.getItem(HINTED);
  } catch {
    return null; // a browser that keeps nothing
  }
};
function hintDone(): void {
  if (hint.hidden) return;
  hint.hidden = true;
  try {
    localStorage.setItem(HINTED, "yes");
  } catch {
    // it is shown again next time
  }
}
hint.hidden = remembered() !== null;
document.addEventListener("keydown", (event) => {
  if ([" ", "l", "L", "h", "H"].includes(event.key)) hintDone();
});

/** Takes a tool for the skin. */
function take(tool: Tool): void {
  if (tool !== "pull" && !scene?.skin) return panel.notify("This scene has no soft skin. Try tube, snake, deer or soft_hand.", "info");
  touch.choose(tool);
  showTool();
}

const size = document.getElementById("ball-radius") as HTMLInputElement;
const press = document.getElementById("ball-press") as HTMLInputElement;
for (const button of document.querySelectorAll<HTMLButtonElement>("[data-tool]")) {
  button.addEventListener("click", () => take(button.dataset.tool as Tool));
}
// On a logarithmic scale, in radii of the character.
size.addEventListener("input", () => {
  touch.resize(stage.radius * 10 ** size.valueAsNumber);
  showTool();
});
press.addEventListener("input", () => {
  touch.press = press.valueAsNumber;
  showTool();
});

function showTool(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-tool]")) {
    button.setAttribute("aria-pressed", String(button.dataset.tool === touch.tool));
  }
  size.value = String(Math.log10(touch.radius / stage.radius));
  press.value = String(touch.press);
  document.getElementById("ball-radius-value")!.textContent = written(touch.radius, "m");
  document.getElementById("ball-press-value")!.textContent = written(touch.press * touch.radius, "m");
}

function sendPull(pointer: number, body: number, point: THREE.Vector3, target: THREE.Vector3, rotation: THREE.Quaternion | null): void {
  const turn = rotation ? { rotation: rotation.toArray() } : {};
  link.send({ type: "drag", pointer, body, point: point.toArray(), target: target.toArray(), strength: panel.strength, ...turn });
}

function describe(body: number): string {
  const line = scene!.bodies[body]!;
  const joint = scene!.joints.find((j) => j.child === body);
  const pinned = status?.pins.includes(body) ? " · pinned" : "";
  const holds = joint ? ` · ${joint.kind} joint${joint.name === line.name ? "" : ` ${joint.name}`}` : "";
  return `${line.name} · ${written(line.mass * 1000, "g")}${holds}${pinned}${measured(body)}`;
}

/** Gap and load of the joint that holds a body, while the colours show one of them. */
function measured(body: number): string {
  const index = scene!.joints.findIndex((j) => j.child === body);
  if (!latest || index < 0 || !(layers.gaps || layers.loads)) return "";
  const numbers = latest.joints.subarray(JOINT.size * index, JOINT.size * (index + 1));
  if (layers.gaps) return ` · gap ${written(numbers[JOINT.gap]!, "m")}`;
  const torque = Math.hypot(...numbers.subarray(JOINT.torque, JOINT.torque + 3));
  return ` · load ${written(numbers[JOINT.force]!, "N")}, ${written(torque, "N·m")}`;
}

function setScene(message: SceneMessage): void {
  if (message.protocol !== PROTOCOL) {
    panel.notify("This page and supple are of different versions: reload the page.", "error");
    return;
  }
  // A changed bone makes the scene anew: one goes on looking from where one looks.
  const furnished = message.things.length + (scene?.things.length ?? 0) > 0;
  const same = scene?.name === message.name && (message.bones.length > 0 || furnished);
  // Nor does it change its clothes when a thing is put beside it.
  const dressed = same && !loading && furnished && JSON.stringify([message.file, message.bones]) === JSON.stringify([scene!.file, scene!.bones]);
  scene = message;
  latest = null;
  hovered = null;
  label.hidden = true;
  pull.drop();
  touch.choose("pull");
  touch.surface = null;
  figure?.dispose();
  lines?.dispose();
  if (figure) stage.scene.remove(figure.group, figure.things, figure.ghosts);
  if (lines) stage.scene.remove(lines.group);
  if (overlay) stage.scene.remove(overlay.group);
  overlay?.dispose();
  overlay = null;
  if (obstacles) stage.scene.remove(obstacles.group);
  obstacles?.dispose();
  held.clear();
  steered = null;
  figure = new Figure(message);
  if (!dressed || !message.file) wear(message.file ? null : Character.ofMeshes(message));
  if (flesh) stage.scene.remove(flesh.group);
  if (soft) stage.scene.remove(soft.group);
  soft?.dispose();
  flesh?.dispose();
  flesh = message.flesh ? new FleshView(message.flesh) : null;
  if (flesh) stage.scene.add(flesh.group);
  soft = flesh && message.skin ? new SoftView(message.skin, message.flesh!, flesh.surface.geometry) : null;
  if (soft && flesh) {
    stage.scene.add(soft.group);
    touch.surface = flesh.surface;
  }
  const covered = new Set(message.skin?.proxies.map(({ body }) => body));
  if (!dressed) showShapes(!message.file && !character?.present && !message.bodies.every((_, body) => covered.has(body)));
  lines = new Lines(message);
  pull.figure = figure;
  stage.scene.add(figure.group, figure.things, figure.ghosts, lines.group);
  weight = 9.81 * message.bodies.slice(0, message.bodies.length - message.thing_bodies).reduce((sum, body) => sum + body.mass, 0);
  obstacles = new Obstacles(message, 0.5 * figure.startBox().getSize(new THREE.Vector3()).length());
  stage.scene.add(obstacles.group);
  if (!same) fit();
  soft?.accompany(figure.group.children, obstacles.group.children);
  // Loads from a thousandth of about the character's weight up to it.
  const heaviest = 10 ** Math.ceil(Math.log10(weight));
  const deep = 10 ** Math.ceil(Math.log10(soft?.depth ?? 1));
  heats = {
    gaps: new Heat("Joint gap", JOINT.gap, "m", 1e-9, 1e-2),
    loads: new Heat("Joint load", JOINT.force, "N", 1e-3 * heaviest, heaviest),
    // the material goes beyond its range at a strain of 17 %
    strain: new Heat("Strain", -1, "%", 1, 100),
    // up to about the depth of the layer
    displacement: new Heat("Displacement", -1, "m", 1e-3 * deep, deep),
    pressure: new Heat("Pressure", -1, "Pa", 1e2, 1e5),
  };
  followNow(message.controls.length > 0);
  // The page may come late: what is followed is looked for from where it started.
  followed.place.fromArray(message.bodies[0]?.start.position ?? [0, 0, 0]);
  Object.assign(followed, { body: 0, generation: message.generation });
  instruments.setScene(message);
  direct.setScene(message);
  panel.setScene(message);
  states.setScene(message);
  things.setScene(message);
  if (furnished) stage.spread(figure.startBox().union(things.whole()));
  gallery.setScene();
  timeline.setScene(message);
  sheet.setScene(message);
  gizmos.setScene(message);
  applyLayers();
  if (message.file && !dressed) void dress(message, message.file, same);
  void dressGuests(message);
}

/** Draws the files of the characters beside the scene's own, once they are read. */
async function dressGuests(message: SceneMessage): Promise<void> {
  const drawn: Character[] = [];
  for (const [k, guest] of message.guests.entries()) {
    try {
      if (guest.file) drawn.push(await Character.ofFile(message, guest.file, await readFile(guest.file, stage.renderer, k + 1), guest.place));
    } catch (error) {
      panel.notify(`${guest.file?.name} cannot be drawn as it is (${String(error)}).`, "error");
    }
    if (message !== scene) return; // another scene was opened meanwhile
  }
  const characters = drawn.length;
  for (const [k, prop] of message.props.entries()) {
    try {
      drawn.push(await Character.ofProp(message, prop, await readFile(prop.file, stage.renderer, message.guests.length + k + 1)));
    } catch (error) {
      panel.notify(`${prop.file.name} cannot be drawn as it is (${String(error)}).`, "error");
    }
    if (message !== scene) return;
  }
  for (const guest of guests) {
    stage.scene.remove(guest.group);
    guest.dispose();
  }
  const more = characters > seenGuests;
  seenGuests = characters;
  guests = drawn;
  timeline.redress();
  for (const guest of guests) stage.scene.add(guest.group);
  applyLayers();
  if (more && latest && figure) see(boxNow(null).union(things.near(boxNow(null))));
}

/** What came in, until there is a frame to tell where the character is. */
let coming: THREE.Box3 | null = null;

/** What comes in is seen, and casts its shadow. */
function see(box: THREE.Box3): void {
  stage.spread(box.clone().union(things.whole()));
  if (!stage.sees(box)) stage.frame(box);
}

/** Camera, light and ground for what there is to see. */
function fit(): void {
  if (!scene || !figure || !obstacles) return;
  roamed.makeEmpty();
  const box = figure.startBox();
  if (flesh) box.union(flesh.startBox());
  // What the artist made fills the picture, not the shapes in it.
  const points = character?.present && !soft ? character.restPoints() : null;
  if (points) box.setFromPoints(points);
  // A creature that can be directed has room to jump, and is seen from the side.
  const directed = scene.scenes.some((line) => line.name === scene!.name.split(":")[0] && (line.takes?.length ?? 0) > 0);
  if (directed) box.max.y = Math.max(box.max.y, box.min.y + 0.9 * box.getSize(new THREE.Vector3()).length());
  const ground = floorOf(scene) ?? findGround(box);
  const whole = obstacles.around(box);
  twins.begin(soft, whole, ground);
  const seen = whole.equals(box) && points ? points : undefined;
  stage.fit(whole, ground, frontOf(scene), directed ? "aside" : "three_quarter", seen, scene.file ? undefined : MOVING_ROOM);
  touch.resize(0.08 * stage.radius);
  showTool();
}

/** Draws the character's own file, once it is read. */
async function dress(message: SceneMessage, file: FileMessage, same: boolean): Promise<void> {
  loading = true;
  let read: Character | null = null;
  try {
    read = await Character.ofFile(message, file, await readFile(file, stage.renderer));
  } catch (error) {
    if (message === scene) panel.notify(`${file.name} cannot be drawn as it is (${String(error)}): you see its collision shapes instead.`, "error");
  }
  if (message !== scene) return read?.dispose(); // another scene was opened meanwhile
  loading = false;
  wear(read);
  showShapes(!read?.present && !soft);
  if (!same) fit();
  applyLayers();
}

/** What is drawn of the character from now on. */
function wear(next: Character | null): void {
  if (character) stage.scene.remove(character.group);
  character?.dispose();
  character = next;
  if (next) stage.scene.add(next.group);
  timeline.redress();
}

/** Shapes lie inside what is drawn: they are drawn when asked for, or when there is nothing else. */
function showShapes(on: boolean): void {
  layers.shapes = document.querySelector<HTMLInputElement>("[data-layer=shapes]")!.checked = on;
}

function heat(): Heat | null {
  if (!heats) return null;
  return layers.loads ? heats.loads : layers.gaps ? heats.gaps : null;
}

/** The number of vertices that the colours of the skin show, with its scale. */
function vertexHeat(): { of: "displacement" | "pressure"; heat: Heat } | null {
  const of = layers.displacement ? "displacement" : layers.pressure ? "pressure" : null;
  return of && heats && soft ? { of, heat: heats[of] } : null;
}

function applyLayers(): void {
  if (!figure || !lines) return;
  // A file's own mesh is not drawn again where it became soft skin.
  if (character) character.group.visible = layers.skin && !soft;
  for (const guest of guests) guest.group.visible = layers.skin;
  soft?.show(layers);
  twins.show(layers.twin);
  flesh?.show(layers);
  figure.group.visible = layers.shapes;
  figure.ghosts.visible = layers.ghost;
  for (const layer of ["bones", "axes", "limits"] as const) lines.show(layer, layers[layer]);
  lines.forces.group.visible = marks.points.visible = layers.forces;
  cones.group.visible = layers.contacts;
  panel.showLegend(layers.strain && flesh ? heats!.strain : (vertexHeat()?.heat ?? heat()));
  fresh = true;
}

/** The height of the ground: the floor of the world, or lower where the character hangs below it. The box of one long chain grows to hold its swing. */
function findGround(box: THREE.Box3): number {
  if (scene!.floor !== null) return scene!.floor;
  if (box.min.y >= -0.01) return 0;
  const length = box.getSize(new THREE.Vector3()).length();
  const anchors = scene!.joints.filter((j) => j.parent === null).map((j) => j.parent_frame.position[1]);
  const parents = scene!.joints.map((j) => j.parent);
  const swings = anchors.length === 1 && new Set(parents).size === parents.length;
  if (swings) box.min.y = Math.min(box.min.y, anchors[0]! - length);
  return box.min.y - 0.15 * length;
}

function show(frame: MovingFrame): void {
  if (!figure || !lines) return;
  figure.move(frame);
  obstacles?.move(frame);
  const meant = pull.active?.body ?? hovered ?? panel.chosen;
  figure.highlight(meant);
  for (const drawn of [character, ...guests]) drawn?.light(meant);
  const trouble = instruments.trouble(frame);
  figure.colour(frame, heat(), trouble?.body ?? null);
  for (const drawn of [character, ...guests]) drawn?.move(figure.worlds);
  const nodes = soft ? soft.carry(frame, layers.cage || layers.strain) : frame.nodes;
  flesh?.move(nodes, layers.strain ? heats!.strain : null);
  const number = vertexHeat();
  if (soft && number) flesh?.colourBy(soft.numbers(frame, number.of), number.heat);
  soft?.move(frame, figure.worlds, layers.shapes);
  lines.move(figure.worlds);
  lines.forces.show(frame, stage.radius, 0.5 * weight);
  if (layers.contacts) cones.show(frame, stage.radius, 0.5 * weight);
  marks.show(frame, status?.pins ?? [], stage.radius);
  follow(frame);
  showOther(frame);
  panel.setFrame(frame);
  stage.touch();
}

/** Where the character is now; of one that is nothing but flesh, where that is. */
function boxNow(body: number | null): THREE.Box3 {
  if (latest) figure!.move(latest); // it may be too new to have been drawn
  const box = figure!.boxNow(body);
  if (flesh && body === null) box.union(flesh.boxNow());
  return box;
}

/** F: what is chosen, or the whole character, where it is now. */
function frameChosen(): void {
  if (!figure || !latest) return;
  const box = boxNow(panel.chosen);
  if (panel.chosen === null || box.isEmpty()) return stage.frame(boxNow(null));
  const limb = new Set(panel.limb());
  const ray = new THREE.Raycaster();
  stage.frameLimb(box, (from, target) => {
    ray.set(from, target.clone().sub(from).normalize());
    const hit = figure!.pick(ray);
    return hit === null || limb.has(hit.body) || hit.point.distanceTo(from) > target.distanceTo(from);
  });
}

/** All places of the character since the camera was last sent somewhere: what swings to and fro is framed once. */
const roamed = new THREE.Box3();
/** The time between two looks at whether the character is in the picture [ms], and how large a part of it it fills then. */
const [LOOKS_EVERY, ROAMING_ROOM] = [100, 0.75];
const looked = { at: 0, step: -1 };
/** How much of the box of flesh has to be seen, about its middle: hardly anything is in its corners. */
const CORE = 0.7;
/** Whether the character is in the picture: the middle of each of its shapes, and the core of its flesh; all of each shape once it is let go. */
function isSeen(): boolean {
  boxNow(null); // puts the figure where the newest frame has it
  // What has been let go lies still in the end, wherever it fell: one wants to see all of it.
  const { bodies, carried } = status?.tones ?? { bodies: [], carried: 1 };
  const lies = carried === 0 && bodies.some((state) => state === "loose" || state === "limp");
  const cores = figure!.coresNow(scene!.file && lies ? 1 : 0);
  const box = flesh?.boxNow();
  if (box && !box.isEmpty()) cores.push(box.setFromCenterAndSize(box.getCenter(new THREE.Vector3()), box.getSize(new THREE.Vector3()).multiplyScalar(CORE)));
  return cores.every((core) => stage.sees(core));
}
/** What leaves the picture by itself is framed again, unless a hand holds it or has turned the camera. */
function keepInPicture(): void {
  if (coming) {
    see(coming.union(boxNow(null)));
    coming = null;
  }
  const now = performance.now();
  if (loading || latest!.step === looked.step || now < looked.at + LOOKS_EVERY) return;
  if (pull.active || keyPull || stage.glides || stage.byHand || (following && !byItself && panel.chosen !== null)) return;
  Object.assign(looked, { at: now, step: latest!.step });
  const box = boxNow(null);
  if (box.isEmpty() || isSeen()) return;
  const size = (of: THREE.Box3) => of.getSize(new THREE.Vector3()).length();
  roamed.union(box);
  if (size(roamed) > 2 * size(box)) roamed.copy(box);
  stage.frame(roamed, ROAMING_ROOM);
}

/** Whether the camera goes along: with what is chosen, or the first body. A scene that is steered begins so. */
let following = false;
/** It does so by itself, because the character was let go: with all of it, whatever is chosen. */
let byItself = false;
const followed = { place: new THREE.Vector3(), body: -1, generation: -1 };
const followButton = document.getElementById("follow") as HTMLButtonElement;
function followNow(on: boolean, itself = false): void {
  following = on;
  byItself = itself;
  followed.body = -1;
  // From where it is now, not from where the next picture finds it: that may be a good while later.
  if (on && latest) follow(latest);
  followButton.setAttribute("aria-pressed", String(on));
}
followButton.addEventListener("click", () => {
  followNow(!following);
  if (following) frameChosen();
});
for (const button of document.querySelectorAll<HTMLButtonElement>("[data-view]")) {
  button.addEventListener("click", () => {
    if (figure && latest) stage.look(button.dataset.view as View, boxNow(null));
  });
}

function follow(frame: MovingFrame): void {
  if (!following) return;
  const body = byItself ? 0 : (panel.chosen ?? 0);
  const now = new THREE.Vector3().fromArray(frame.poses, 7 * body);
  if (followed.generation === frame.generation && followed.body === body) stage.go(now.clone().sub(followed.place));
  followed.place.copy(now);
  Object.assign(followed, { body, generation: frame.generation });
}

/** The take that is compared with, as a translucent figure at the same step. */
function showOther(frame: MovingFrame): void {
  if (frame.other && !overlay) {
    overlay = new Overlay(scene!);
    stage.scene.add(overlay.group);
    const shown = () => (fresh = true);
    overlay.dress(stage.renderer).then(shown, (error) => panel.notify(`The other take is drawn by its shapes (${String(error)}).`, "error"));
  }
  overlay?.show(frame);
}

/** A word beside the body that made a step hard: red alone is not seen by all. */
function showTrouble(): void {
  const trouble = latest && instruments.trouble(latest);
  if ((trouble?.body ?? null) !== marked) fresh = true; // the colour comes and goes with it
  marked = trouble?.body ?? null;
  troubleLabel.hidden = !trouble?.words || !figure;
  if (!trouble || !figure) return;
  troubleLabel.textContent = `${scene!.bodies[trouble.body]?.name ?? "A body"} ${trouble.words}`;
  const [x, y] = toScreen(new THREE.Vector3().setFromMatrixPosition(figure.worldOf(trouble.body)));
  const inside = (at: number, size: number) => Math.min(Math.max(at, 20), size - 20);
  troubleLabel.style.left = `${inside(x, canvas.clientWidth)}px`;
  troubleLabel.style.top = `${inside(y, canvas.clientHeight)}px`;
}

/** The rubber band follows the mouse and the body, and tells the force. */
function showPull(): void {
  if (!figure || !lines) return;
  const active = pull.active ?? keyPull;
  const grabbed = touch.grabbed;
  const grab = grabbed && latest?.skin?.grabs.find(({ vertex }) => vertex === grabbed.vertex);
  if (soft && grabbed && grab) {
    const from = new THREE.Vector3(...soft.placeOf(grabbed.vertex));
    lines.forces.stretch(null, null);
    return showForce(from, grab.stiffness * from.distanceTo(new THREE.Vector3().fromArray(grab.target)));
  }
  if (!active) {
    lines.forces.stretch(null, null);
    forceLabel.hidden = true;
    return;
  }
  const from = active.point.clone().applyMatrix4(figure.worldOf(active.body));
  lines.forces.stretch(from, active.target);
  const drag = latest?.drags.findLast((d) => d.puller === 1 && d.body === active.body);
  showForce(from, drag ? Math.hypot(...drag.force) : null);
}

/** The figure beside what is pulled [N]. */
function showForce(at: THREE.Vector3, force: number | null): void {
  const [x, y] = toScreen(at);
  forceLabel.hidden = force === null;
  if (force !== null) forceLabel.textContent = written(force, "N");
  forceLabel.style.left = `${x}px`;
  forceLabel.style.top = `${y}px`;
  stage.touch();
}

function toScreen(point: THREE.Vector3): [number, number] {
  const p = point.clone().project(stage.camera);
  return [((p.x + 1) / 2) * canvas.clientWidth, ((1 - p.y) / 2) * canvas.clientHeight];
}

// Arrow keys steer a scene that has controls: up and down drive, left and right turn. With Alt they turn the camera all the same.
const held = new Set<string>();
let steered: string | null = null;
function steer(): void {
  const between = (plus: string, minus: string) => Number(held.has(plus)) - Number(held.has(minus));
  const ways: Record<string, number> = { drive: between("ArrowUp", "ArrowDown"), turn: between("ArrowLeft", "ArrowRight") };
  const values = scene!.controls.map((name) => ways[name] ?? 0);
  if (String(values) === steered) return;
  steered = String(values);
  link.send({ type: "steer", values });
}
canvas.addEventListener("keyup", (event) => {
  if (held.delete(event.key)) steer();
});
canvas.addEventListener("blur", () => {
  if (held.size === 0) return;
  held.clear();
  steer();
});

// Arrow keys: the camera, or with Shift a pull at the chosen body for as long as they are down.
let keyPull: { body: number; point: THREE.Vector3; target: THREE.Vector3 } | null = null;
const KEY_POINTER = 1;
canvas.addEventListener("keydown", (event) => {
  const arrows: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const way = arrows[event.key];
  if (event.key === "+" || event.key === "-") {
    stage.turn(0, 0, event.key === "+" ? 0.9 : 1 / 0.9);
    event.preventDefault();
  }
  if (!way) return;
  event.preventDefault();
  if (scene && scene.controls.length > 0 && !event.shiftKey && !event.altKey) {
    held.add(event.key);
    return steer();
  }
  if (!event.shiftKey) return stage.turn(-0.1 * way[0], -0.1 * way[1], 1);
  if (panel.chosen === null) return panel.notify("Choose a bone first: N picks the next one.", "info");
  if (!figure) return;
  if (!keyPull) {
    const at = new THREE.Vector3().setFromMatrixPosition(figure.worldOf(panel.chosen));
    keyPull = { body: panel.chosen, point: new THREE.Vector3(), target: at };
  }
  const [right, up] = [new THREE.Vector3(), new THREE.Vector3()];
  stage.camera.matrixWorld.extractBasis(right, up, new THREE.Vector3());
  keyPull.target.addScaledVector(right, 0.1 * stage.radius * way[0]).addScaledVector(up, 0.1 * stage.radius * way[1]);
  sendPull(KEY_POINTER, keyPull.body, keyPull.point, keyPull.target, null);
});
const endKeyPull = () => {
  if (keyPull) link.send({ type: "release", pointer: KEY_POINTER });
  keyPull = null;
};
canvas.addEventListener("keyup", (event) => {
  if (event.key.startsWith("Arrow") || event.key === "Shift") endKeyPull();
});
canvas.addEventListener("blur", endKeyPull);

function tick(): void {
  requestAnimationFrame(tick);
  const start = performance.now();
  touch.tick();
  pull.tick();
  panel.tick();
  if (fresh && latest) {
    fresh = false;
    show(latest);
  }
  if (latest && figure) keepInPicture();
  takes.tick();
  states.tick();
  direct.tick();
  gallery.tick();
  timeline.tick();
  if (latest && figure) gizmos.tick();
  pins.tick();
  sheet.tick();
  showPull();
  showTrouble();
  twins.tick(toScreen);
  if (latest) instruments.draw(latest);
  const scripted = performance.now();
  // Until the character is there, the sky and the floor are drawn once: pictures in between would only
  // delay the first one of it.
  const empty = firstDone === null && (!scene || !latest || loading);
  if (!(empty && frames > 0) && stage.draw(empty)) {
    frames++;
    if (waits && latest && !loading && status?.playing) link.send({ type: "play" });
    waits &&= !latest || loading;
    if (!empty) firstDone ??= stage.done();
    cost.script = scripted - start;
    cost.draw = performance.now() - scripted;
  }
  if (firstPicture === null && firstDone?.()) firstPicture = performance.now();
}
tick();

// What tests and the curious ask the page.
declare global {
  interface Window {
    supple: object;
  }
}
window.supple = {
  get scene() {
    return scene;
  },
  get status() {
    return status;
  },
  get frame() {
    return latest;
  },
  get frames() {
    return frames;
  },
  get firstPicture() {
    return firstPicture;
  },
  /** Whether all there is to draw is there: a file takes a moment. */
  get ready() {
    return scene !== null && !loading;
  },
  /** What the page shows of the comparison of two takes. */
  get comparison() {
    return takes.comparison;
  },
  /** Meshes of the take that is compared with, drawn with the materials of their file. */
  get otherMeshes() {
    return overlay?.dressed ?? 0;
  },
  /** Of the last drawn frame: time of the page's script and of the drawing [ms], and draw calls, shadows included. */
  get cost() {
    return { ...cost, calls: stage.renderer.info.render.calls };
  },
  /** Contacts whose cones are drawn, and how many of them slide. */
  get cones() {
    return cones.shown;
  },
  /** What is shown along the slider of time, and of other moments. */
  get timeline() {
    return { ...timeline.shown, ...timeline.range };
  },
  /** Marks of pins. */
  get pins() {
    return pins.shown;
  },
  /** Handles on the chosen bone. */
  get gizmos() {
    return gizmos.shown;
  },
  /** What is computed and drawn of the contact sheet. */
  get sheet() {
    return sheet.state;
  },
  /** How many marks of each kind are drawn. */
  get marks() {
    return marks.shown;
  },
  /** What the drawn skin measures. */
  skin: () => character?.measure() ?? null,
  /** Vertices of the drawn character, by mesh. */
  points: (most: number) => character?.points(most) ?? [],
  /** Whether the meshes of a file are drawn as they are. */
  get meshesDrawn() {
    return character !== null && character.present && character.group.visible;
  },
  /** What is drawn of flesh. */
  get flesh() {
    return flesh?.shown ?? null;
  },
  /** What is told and drawn of soft skin. */
  get soft() {
    return soft && latest ? soft.shown(latest) : null;
  },
  get tool() {
    return { tool: touch.tool, radius: touch.radius, press: touch.press, preview: touch.preview.visible };
  },
  obstacleAt: (obstacle: number) => obstacles?.placeOf(obstacle) ?? null,
  /** Where a vertex of the soft skin is drawn. */
  vertexAt: (vertex: number) => soft?.placeOf(vertex) ?? null,
  /** Where a place is, in pixels of the window. */
  screenAt(place: [number, number, number]): [number, number] {
    const [x, y] = toScreen(new THREE.Vector3(...place));
    const box = canvas.getBoundingClientRect();
    return [x + box.left, y + box.top];
  },
  /** Where a body's centre of mass is, in pixels of the window. */
  screenOf(body: number): [number, number] {
    const [x, y] = toScreen(new THREE.Vector3().setFromMatrixPosition(figure!.worldOf(body)));
    const box = canvas.getBoundingClientRect();
    return [x + box.left, y + box.top];
  },
  /** The mean colour of the character as it is drawn, and which share of the picture's height or width it takes. */
  portrait(): { mean: number[]; fills: number } {
    const { width, height, data } = stage.snapshot(character?.group ?? null);
    const sum = [0, 0, 0];
    let pixels = 0;
    const [rows, columns] = [new Set<number>(), new Set<number>()];
    for (let k = 0; k < data.length; k += 4) {
      if (data[k] === 255 && data[k + 1] === 0 && data[k + 2] === 255) continue;
      pixels++;
      rows.add(Math.floor(k / (4 * width)));
      columns.add((k / 4) % width);
      for (let c = 0; c < 3; c++) sum[c]! += data[k + c]!;
    }
    return { mean: sum.map((s) => s / pixels), fills: Math.max(rows.size / height, columns.size / width) };
  },
  /** Mean and standard deviation of the lightness, 0 to 255, in a square of the picture about a place in the window. */
  patch(at: [number, number], half: number): { mean: number; deviation: number } {
    const { width, height, data } = stage.snapshot(null);
    const box = canvas.getBoundingClientRect();
    const x = Math.round(((at[0] - box.left) * width) / box.width);
    const y = Math.round(height - ((at[1] - box.top) * height) / box.height);
    const lights: number[] = [];
    for (let v = y - half; v <= y + half; v++) {
      for (let u = x - half; u <= x + half; u++) {
        const k = 4 * (v * width + u);
        lights.push(0.2126 * data[k]! + 0.7152 * data[k + 1]! + 0.0722 * data[k + 2]!);
      }
    }
    const mean = lights.reduce((a, b) => a + b, 0) / lights.length;
    return { mean, deviation: Math.sqrt(lights.reduce((a, b) => a + (b - mean) ** 2, 0) / lights.length) };
  },
  /** How many vertices of the drawn characters are lit. */
  get lit() {
    return [character, ...guests].reduce((sum, drawn) => sum + (drawn?.litVertices ?? 0), 0);
  },
  /** What the drawn characters beside the scene's own measure. */
  guests: () => guests.map((guest) => ({ ...guest.measure(), meshes: guest.meshes.length })),
  /** Whether the camera is on its way. */
  get glides() {
    return stage.glides;
  },
  /** Whether the character is in the picture. */
  get inPicture() {
    return latest !== null && isSeen();
  },
  /** Where the camera is, where it looks and what it sees. */
  get camera() {
    const { position, fov, aspect, near, far } = stage.camera;
    return { position: position.toArray(), target: stage.controls.target.toArray(), fov, aspect, near, far };
  },
  /** How far the room that lights it is turned [rad]. */
  get room() {
    return stage.scene.environmentRotation.y;
  },
  send: (message: object) => link.send(message),
  bodyOf: (name: string) => scene?.bodies.findIndex((body) => body.name === name) ?? -1,
};
