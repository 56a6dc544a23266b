// The messages of docs/protocol.md as the page reads them.

export interface Frame3 {
  position: [number, number, number];
  rotation: [number, number, number, number];
}

export type Shape = { frame: Frame3 } & (
  | { shape: "sphere"; radius: number }
  | { shape: "cuboid"; size: [number, number, number] }
  | { shape: "capsule"; length: number; radius: number }
  | { shape: "cylinder"; length: number; radius: number }
  | { shape: "hull"; points: [number, number, number][] }
  | { shape: "mesh"; vertices: [number, number, number][]; triangles: [number, number, number][] }
);

/** What bodies touch and cannot move. Everything below the plane of a half-space is solid. */
export type Obstacle = { name: string } & (Shape | { shape: "half_space"; frame: Frame3 });

export interface Joint {
  name: string;
  kind: string;
  child: number;
  parent: number | null;
  child_frame: Frame3;
  parent_frame: Frame3;
  turning_axis: number | null;
  angle: [number, number] | null;
  swing: [number, number] | null;
  slide: [number, number] | null;
}

export interface SceneMessage {
  type: "scene";
  protocol: number;
  generation: number;
  name: string;
  bodies: { name: string; mass: number; start: Frame3; rest: Frame3; shapes: Shape[] }[];
  joints: Joint[];
  trackers: { name: string; body: number; point: [number, number, number] }[];
  obstacles: Obstacle[];
  /** What a person may steer the scene by, each from -1 to 1. */
  controls: string[];
  /** Height of the level floor, if there is one. */
  floor: number | null;
  /** The character's own file, if the scene is one. */
  file: FileMessage | null;
  /** What bodies carry when there is no file, in the world when they are at `rest`; four bodies and weights a vertex. */
  meshes: SkinMessage[];
  /** Soft matter around bones. */
  flesh: FleshMessage | null;
  /** How bones carry it, if it is skin. */
  skin: SkinMap | null;
  /** What was changed, guessed or left out of a file. */
  notes: { code: string; part: string; text: string }[];
  /** By body: the bone of a character, with what may be changed of it; empty when the scene is none. */
  bones: Bone[];
  /** The whole character, if the scene is one. */
  rig: RigLine | null;
  /** Things that were put into it, and how many bodies, the last, are such. */
  things: Thing[];
  thing_bodies: number;
  /** Characters that were put into it; their bodies come before those of things. */
  guests: Guest[];
  /** Things of files. */
  props: Prop[];
  /** Clips of the file; one that repeats ends as it begins. */
  clips: { name: string; seconds: number; repeats: boolean }[];
  /** Takes of a scene: the first is its own motion. */
  scenes: { name: string; parameters: string; summary: string; takes?: { name: string; summary: string }[] }[];
  solvers: { name: string; summary: string }[];
  /** Names of the stages that `MovingFrame.stages` times. */
  stages: string[];
}

/** Something put into the scene: its middle, or the middle of where it stands [m], mass in kg. */
export interface Thing {
  name: string;
  kind: string;
  position: [number, number, number];
  rotation: [number, number, number, number];
  size: [number, number, number];
  mass: number;
  friction: number;
  /** The bone that carries it, and where on it. */
  held?: { by: string; position: number[]; rotation: number[] };
  /** Of a character: its file, none for the scene's own once more; its clip and its state at the start. */
  file?: string;
  clip?: string;
  state?: string;
}

/** A thing of a file: what of the file lies in the middle of its body, and how many times as large it is. */
export interface Prop {
  name: string;
  body: number;
  file: FileMessage;
  centre: [number, number, number];
  scale: [number, number, number];
}

/** A character beside the scene's own: its bodies, and where the origin of its file lies. */
export interface Guest {
  name: string;
  first: number;
  count: number;
  place: Frame3;
  file: FileMessage | null;
  clips: { name: string; seconds: number; repeats: boolean }[];
}

/** A clip that is followed: at time `begun` it shows its place `from`. */
export interface PlayedClip {
  name: string;
  begun: number;
  from: number;
  speed: number;
  again: boolean;
  seconds: number;
}

/** A file at `file/KEY/NAME`, with what it names beside it. */
export interface FileMessage {
  key: string;
  name: string;
  /** Metres in a unit of length of the file. */
  scale: number;
  /** By node of the file: the body that carries it. */
  carried_by: (number | null)[];
}

/** A bone: mass in kg, times in s, angles in degrees. */
export interface Bone {
  name: string;
  class: string;
  mass: number;
  /** hinge, ball, or what a joint of the file holds; null: it has none. */
  joint: string | null;
  joint_from: string;
  spring_from: string;
  sag: number;
  settle: number;
  strength: number;
  range: [number, number] | null;
  swing: [number, number] | null;
  twist: [number, number] | null;
  /** Hair, a tail or the like: it hangs on a spring of its own in every state. */
  sways: boolean;
}

/** Takes of a rig before or after an edit. */
export interface AsideLine {
  sheet: number;
  mark: string;
  takes: ({ name: string; parent: number | null; first: number; end: number } | null)[];
}

/** Of a whole character: kg, m, metres a unit of its file; and what was asked for. */
export interface RigLine {
  mass: number;
  height: number;
  scale: number;
  asked: { mass?: number; height?: number; scale?: number };
}

export interface SkinMessage {
  name: string;
  colour: [number, number, number];
  vertices: number[];
  triangles: number[];
  bodies: number[];
  weights: number[];
}

/** A cage of tetrahedra and the surface in it, flat lists. */
export interface FleshMessage {
  /** Nodes from this one on are fixed to bones. */
  free: number;
  /** Where each node is at the start, three numbers each. */
  start: number[];
  masses: number[];
  /** Four nodes each. */
  elements: number[];
  /** By vertex of the surface: its element, and the weights of that element's nodes. */
  tets: number[];
  weights: number[];
  triangles: number[];
  /** Linear red, green and blue of each vertex, or none. */
  colours: number[];
}

/** How bodies carry a soft skin from its rest pose, flat lists: four bodies and weights a vertex. */
export interface SkinMap {
  map: "linear" | "centres";
  rest: number[];
  /** The corners of the layer below the vertices. */
  inner: number[];
  /** The vertex that carries each of them. */
  follows: number[];
  centres: number[];
  bodies: number[];
  weights: number[];
  /** By body: from the rest pose to its coordinates. */
  from_rest: Frame3[];
  /** Hulls of bones in their coordinates, and the vertices that are tested when something comes near. */
  proxies: { body: number; points: [number, number, number][]; triangles: [number, number, number][]; vertices: number[] }[];
}

/** The version that this page speaks. */
export const PROTOCOL = 1;

export interface TakeLine {
  name: string;
  parent: number | null;
  first: number;
  end: number;
}

export interface JournalLine {
  journal: number;
  scene: string;
  takes: number;
  steps: number;
  seconds: number;
  /** Seconds since 1970. */
  written: number;
  build: string;
}

/** The answer to GET compare/A/B. */
export interface Comparison {
  takes: [number, number];
  first: number;
  last: number;
  steps_per_column: number;
  times: number[];
  /** Smaller differences may be those of rounding. */
  resolution: { angle: number; shift: number };
  angles: Curve[];
  shifts: Curve[];
}

/** How one joint differs over time. */
export interface Curve {
  joint: number;
  name: string;
  largest: number;
  values: number[];
}

export type Level = "primary" | "secondary" | "tertiary";
export type Mode = "off" | "goals" | "keyframes" | "landing";
export type Style = "least_acceleration" | "least_torque" | "least_velocity";

/** What a bone should do: one of these. */
export type Aim =
  | { position: number[] }
  | { height: number }
  | { orientation: number[] }
  | { velocity: number[] }
  | { angular_velocity: number[] }
  | { acceleration: number[] }
  | { angular_acceleration: number[] };

export interface Goal {
  body: number;
  point: number[];
  aim: Aim;
  level: Level;
  weight: number;
}

export interface JointControl {
  joint: number;
  /** How dear its command is: of two joints the one with the smaller weight does more. */
  weight: number;
  /** Largest torque [N·m] or force [N]; null: none of its own. */
  max_torque: number | null;
  actuation: "by_place" | "active" | "passive";
}

/** All that is asked of the actuators but pulls. It is sent back whole. */
export interface Control {
  mode: Mode;
  style: Style;
  goals: Goal[];
  drag_level: Level;
  joint_level: Level;
  /** Joints that differ from the usual. */
  joints: JointControl[];
  /** The target pose, positions of all joints; empty: the pose of the start. */
  pose: number[];
  /** How much of the way to it is asked for beside the goals, 0 to 1. */
  pose_share: number;
  keyframes: { time: number; positions: number[] }[];
  /** Share of the keyframes in the commands. */
  share: number;
  landing: { hertz: number; ratio: number };
}

/** What is marked at a step: a change of state or clip, or a name. */
export interface Mark {
  step: number;
  what:
    | { mark: "state"; bodies?: number[]; state: string; strength: number; blend: number }
    | { mark: "clip"; clip: string; from: number; speed: number; again: boolean; fade: number }
    | { mark: "hits"; impulse: number; recovery: number }
    | { mark: "no_hits" }
    | { mark: "marker"; name: string }
    | null;
}

export interface StatusMessage {
  type: "status";
  generation: number;
  playing: boolean;
  /** How far what was simulated is to be trusted, and why no further. */
  quality: "good" | "degraded" | "failed";
  reasons: string[];
  speed: number;
  settings: {
    solver: string;
    dt: number;
    substeps: number;
    gravity: [number, number, number];
    stiffness_scale: number;
    damping_scale: number;
    torques: boolean;
    contacts: "off" | "obstacles" | "all";
    /** Of contacts that are springs [N/m]; null where they are none. */
    contact_stiffness: number | null;
    /** Speed below which their friction is viscous [m/s]. */
    contact_slip: number | null;
    script: boolean;
    hold: boolean;
    pose: boolean;
    budget: number;
    control: Control;
    joints: [number, number, number][];
  };
  /** What the doctor says of the model that a file gave; null while it is being examined, and for other scenes. */
  doctor: {
    findings: { code: string; part: string; what: string; remedy: string }[];
    seconds: number;
    failure: string | null;
  } | null;
  /** How the bodies hold themselves: `posed`, `follow`, `loose`, `limp`, or `scene` where the scene moves them. */
  tones: {
    bodies: string[];
    strengths: number[];
    /** The part of the mass that is held up from outside. */
    carried: number;
    clip: PlayedClip | null;
    /** By guest. */
    guest_clips: (PlayedClip | null)[];
    /** Impulse [N·s] and recovery [s]. */
    hits: [number, number] | null;
  };
  marks: Mark[];
  pins: number[];
  /** One by one those of the pins. */
  pin_levels: Level[];
  /** Where they hold the centres of mass, and whether they hold orientations. */
  pin_places: [number, number, number][];
  pin_turns: boolean[];
  take: number;
  /** By index; null where one was removed. */
  takes: (TakeLine | null)[];
  /** The take that is shown beside the present one. */
  aside: AsideLine[];
  compare: number | null;
  /** Why the takes are shown as stored and not computed again. */
  stored: string | null;
  /** What would be undone and done again. */
  undo: string | null;
  redo: string | null;
  /** Something was done by hand that no page holds, or something was recorded since. */
  unsaved: boolean;
  /** Why the journal cannot be written at present. */
  journal_trouble: string | null;
  /** Sessions that did not finish. */
  journals: JournalLine[];
  bytes: number;
  notice: { number: number; level: string; text: string } | null;
}

export interface ErrorMessage {
  type: "error";
  code: string;
  message: string;
}

export interface MovingFrame {
  playing: boolean;
  replaying: boolean;
  behind: boolean;
  failed: boolean;
  generation: number;
  time: number;
  step: number;
  end: number;
  take: number;
  pace: number;
  gap: number;
  tilt: number;
  widest: number | null;
  substeps: number;
  fallbacks: number;
  limits: number;
  contacts: number;
  factorisations: number;
  solves: number;
  /** Halvings because a joint would turn too far, parts by the backward rule, last resorts, projected velocities. */
  turning: number;
  backward: number;
  resorts: number;
  projections: number;
  /** The body at which the step had most trouble, and why (docs/protocol.md); cause 0 is none. */
  trouble: { body: number | null; cause: number };
  micros: number;
  /** Time of each stage [µs]. */
  stages: Float32Array;
  energy: { kinetic: number; gravity: number; springs: number };
  /** Seven numbers a body: position, then rotation x, y, z, w. */
  poses: Float32Array;
  /** Eight numbers a joint, see JointNumber. */
  joints: Float32Array;
  targets: { tracker: number; pose: Float32Array }[];
  drags: { body: number; puller: number; point: Float32Array; force: Float32Array }[];
  /** The poses are those that were stored; nothing was computed. */
  stored: boolean;
  /** Poses of the take that is compared with, at the same step. */
  other: Float32Array | null;
  /** Places of the nodes of flesh, three numbers each. */
  nodes: Float32Array;
  /** Contacts that push: the force is that on the body. */
  pushes: { body: number; point: Float32Array; normal: Float32Array; force: Float32Array; friction: number }[];
  /** What the actuators did, and the goals they had. */
  direction: Direction;
  /** Obstacles that are moved, and where they are: position, then rotation. */
  obstacles: { obstacle: number; pose: Float32Array }[];
  /** What the skin does, if there is one. */
  skin: SkinFrame | null;
}

export interface SkinFrame {
  /** Of each vertex in the rest pose [m], three numbers each. */
  displacements: Float32Array;
  /** What pushed on vertices in the last part [N]. */
  pressures: { vertex: number; force: Float32Array }[];
  /** Bodies whose vertices were tested for contacts. */
  tested: Uint32Array;
  balls: { centre: Float32Array; radius: number }[];
  /** Pulled vertices; the stiffness in N/m. */
  grabs: { vertex: number; target: Float32Array; stiffness: number }[];
}

export interface Direction {
  mode: Mode;
  actuators: number;
  /** Commands held back by a bound. */
  limited: number;
  /** Largest force or torque along a passive root [N, N·m]. */
  root: number;
  /** The pull from outside that would have done as much: force [N] and torque [N·m]. */
  pull: { force: number; torque: number };
  goals: { body: number; aim: number; level: number; cursor: boolean; point: Float32Array; target: Float32Array }[];
}

const MODES: Mode[] = ["off", "goals", "keyframes", "landing"];
/** The numbers of aims in a frame. */
export const AIM = { position: 0, height: 1, orientation: 2 } as const;

/** Where a joint's numbers stand among its eight: gap [m], force [N], rotation vector [rad] and torque [N·m] in the joint's frame. */
export const JOINT = { size: 8, gap: 0, force: 1, angle: 2, torque: 5 } as const;

/** The part of a frame's head that this page reads; where the bodies begin is told in the head. */
const HEAD = 152;

/** Reads a frame, or null when it is of another version. */
export function decodeFrame(buffer: ArrayBuffer): MovingFrame | null {
  const view = new DataView(buffer);
  if (buffer.byteLength < HEAD || view.getUint16(0, true) !== PROTOCOL) return null;
  const u32 = (at: number) => view.getUint32(at, true);
  const f32 = (at: number) => view.getFloat32(at, true);
  const flags = view.getUint16(2, true);
  const [bodies, joints, targets, drags] = [u32(28), u32(32), u32(36), u32(40)];
  let at = u32(92);
  const floats = (count: number) => {
    const array = new Float32Array(buffer, at, count);
    at += 4 * count;
    return array;
  };
  const poses = floats(7 * bodies);
  const jointNumbers = floats(JOINT.size * joints);
  const targetList = [];
  for (let k = 0; k < targets; k++) {
    const tracker = u32(at);
    at += 4;
    targetList.push({ tracker, pose: floats(7) });
  }
  const dragList = [];
  for (let k = 0; k < drags; k++) {
    const [body, puller] = [u32(at), u32(at + 4)];
    at += 8;
    dragList.push({ body, puller, point: floats(3), force: floats(3) });
  }
  const others = u32(at);
  at += 4;
  const other = others > 0 ? floats(7 * others) : null;
  const pushes = [];
  const count = at + 4 <= buffer.byteLength ? u32(at) : 0;
  at += 4;
  for (let k = 0; k < count; k++) {
    const body = u32(at);
    at += 4;
    pushes.push({ body, point: floats(3), normal: floats(3), force: floats(3), friction: floats(1)[0]! });
  }
  const nodeCount = at + 4 <= buffer.byteLength ? u32(at) : 0;
  at += 4;
  const nodes = nodeCount > 0 ? floats(3 * nodeCount) : new Float32Array();
  const direction: Direction = { mode: "off", actuators: 0, limited: 0, root: 0, pull: { force: 0, torque: 0 }, goals: [] };
  if (at + 60 <= buffer.byteLength) {
    Object.assign(direction, { mode: MODES[u32(at)] ?? "off", actuators: u32(at + 4), limited: u32(at + 8) });
    Object.assign(direction, { root: f32(at + 12), pull: { force: f32(at + 16), torque: f32(at + 20) } });
    const goals = u32(at + 56);
    at += 60;
    for (let k = 0; k < goals; k++) {
      const goal = { body: u32(at), aim: u32(at + 4), level: u32(at + 8), cursor: u32(at + 12) === 1 };
      at += 16;
      direction.goals.push({ ...goal, point: floats(3), target: floats(3) });
    }
  }
  const obstacles = [];
  for (let left = at + 4 <= buffer.byteLength ? u32(at) : 0; left > 0; left--) {
    obstacles.push({ obstacle: u32(at + 4), pose: new Float32Array(buffer, at + 8, 7) });
    at += 32;
  }
  at += 4;
  let skin: SkinFrame | null = null;
  if (at + 4 <= buffer.byteLength) {
    const count = () => {
      at += 4;
      return u32(at - 4);
    };
    const list = <T>(read: () => T): T[] => Array.from({ length: count() }, read);
    const displacements = floats(3 * count());
    const pressures = list(() => ({ vertex: count(), force: floats(3) }));
    const tested = Uint32Array.from(list(count));
    const balls = list(() => ({ centre: floats(3), radius: floats(1)[0]! }));
    const grabs = list(() => ({ vertex: count(), target: floats(3), stiffness: floats(1)[0]! }));
    skin = { displacements, pressures, tested, balls, grabs };
  }
  const index = (at: number) => (u32(at) === 0xffffffff ? null : u32(at));
  return {
    playing: (flags & 1) !== 0,
    replaying: (flags & 2) !== 0,
    behind: (flags & 4) !== 0,
    failed: (flags & 8) !== 0,
    stored: (flags & 16) !== 0,
    generation: u32(4),
    time: view.getFloat64(8, true),
    step: u32(16),
    end: u32(20),
    take: u32(24),
    pace: f32(44),
    gap: f32(48),
    tilt: f32(52),
    widest: index(56),
    substeps: u32(60),
    fallbacks: u32(64),
    limits: u32(68),
    contacts: u32(72),
    factorisations: u32(96),
    solves: u32(100),
    turning: u32(104),
    backward: u32(108),
    resorts: u32(112),
    projections: u32(116),
    trouble: { body: index(120), cause: u32(124) },
    micros: f32(76),
    stages: new Float32Array(buffer, 128, 6),
    energy: { kinetic: f32(80), gravity: f32(84), springs: f32(88) },
    poses,
    joints: jointNumbers,
    targets: targetList,
    drags: dragList,
    other,
    nodes,
    pushes,
    direction,
    obstacles,
    skin,
  };
}
