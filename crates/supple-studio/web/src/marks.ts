// Marks of goals, drawn as in [Kim & Pollard 2008]: the dragged bone a blue diamond, the cursor a yellow circle with the path it
// came, an orientation to keep a red ring, a place or a height to keep a red rectangle; what is only slowed down, a red cross.

import * as THREE from "three";
import { AIM, type MovingFrame } from "./protocol";

const MOST = 2048;
/** Points of the path that are kept, and how far apart they are, in radii of the character. */
const [LONGEST, APART] = [1500, 0.006];
const [BLUE, YELLOW, RED] = [0x2f6fed, 0xffd21f, 0xe02b2b].map((colour) => new THREE.Color(colour));
/** Size by level [pixels]: what comes first is larger. */
const SIZES = [24, 19, 15];
/** The numbers that the shader knows the shapes by. */
const SHAPES = { path: 0, cursor: 1, diamond: 2, ring: 3, place: 4, height: 5, cross: 6 };
export type MarkShape = keyof typeof SHAPES;

export class Marks {
  readonly points: THREE.Points<THREE.BufferGeometry, THREE.ShaderMaterial>;
  /** How many marks of each shape are drawn. */
  shown: Record<MarkShape, number> = none();
  private readonly places = attribute(3);
  private readonly colours = attribute(3);
  /** Shape and size. */
  private readonly looks = attribute(2);
  private path: THREE.Vector3[] = [];
  private last = { generation: -1, take: -1, step: -1, held: false };

  constructor() {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", this.places);
    geometry.setAttribute("colour", this.colours);
    geometry.setAttribute("look", this.looks);
    this.points = new THREE.Points(geometry, markMaterial());
    this.points.frustumCulled = false;
    this.points.renderOrder = 4;
  }

  /** Shows the goals of a frame. Pins are places to keep. */
  show(frame: MovingFrame, pins: number[], radius: number): void {
    const goals = frame.direction.goals.map((goal) => ({ ...goal, cursor: goal.cursor && !pins.includes(goal.body) }));
    const cursors = goals.filter((goal) => goal.cursor && goal.aim === AIM.position);
    this.follow(frame, cursors.map((goal) => new THREE.Vector3().fromArray(goal.target)), APART * radius);
    this.shown = none();
    for (const place of this.path) this.add("path", place, YELLOW!, 6);
    for (const { aim, level, cursor, point, target } of goals) {
      const size = SIZES[level] ?? SIZES[0]!;
      if (aim === AIM.orientation) this.add("ring", at(point), RED!, 1.25 * size);
      else if (aim === AIM.height) this.add("height", at(target), RED!, size);
      else if (aim !== AIM.position) this.add("cross", at(point), RED!, size);
      else if (!cursor) this.add("place", at(target), RED!, size);
      else {
        this.add("diamond", at(point), BLUE!, SIZES[0]!);
        this.add("cursor", at(target), YELLOW!, SIZES[1]!);
      }
    }
    this.points.geometry.setDrawRange(0, this.count());
    for (const part of [this.places, this.colours, this.looks]) part.needsUpdate = true;
  }

  /** The path of the cursors since the pull began, as far as steps were done. */
  private follow(frame: MovingFrame, cursors: THREE.Vector3[], apart: number): void {
    const { last } = this;
    const held = cursors.length > 0;
    const elsewhere = frame.generation !== last.generation || frame.take !== last.take || frame.step < last.step;
    if (elsewhere || (held && !last.held)) this.path = [];
    if (frame.step > last.step || this.path.length === 0) {
      for (const place of cursors) {
        if (this.path.slice(-2 * cursors.length).every((before) => before.distanceTo(place) > apart)) this.path.push(place);
      }
      this.path = this.path.slice(-LONGEST);
    }
    this.last = { generation: frame.generation, take: frame.take, step: frame.step, held };
  }

  private count(): number {
    return Object.values(this.shown).reduce((sum, n) => sum + n, 0);
  }

  private add(shape: MarkShape, place: THREE.Vector3, colour: THREE.Color, size: number): void {
    const k = this.count();
    if (k === MOST) return;
    this.places.setXYZ(k, place.x, place.y, place.z);
    this.colours.setXYZ(k, colour.r, colour.g, colour.b);
    this.looks.setXY(k, SHAPES[shape], size * Math.min(devicePixelRatio, 2));
    this.shown[shape]++;
  }
}

const none = (): Record<MarkShape, number> => ({ path: 0, cursor: 0, diamond: 0, ring: 0, place: 0, height: 0, cross: 0 });
const at = (point: Float32Array) => new THREE.Vector3().fromArray(point);
const attribute = (numbers: number) => new THREE.BufferAttribute(new Float32Array(numbers * MOST), numbers).setUsage(THREE.DynamicDrawUsage);

/** Each point a shape of as many pixels as its size, with a dark edge. */
function markMaterial(): THREE.ShaderMaterial {
  return new THREE.ShaderMaterial({
    transparent: true,
    depthTest: false,
    depthWrite: false,
    vertexShader: `attribute vec3 colour; attribute vec2 look; varying vec3 ink; varying vec2 kind;
      void main() { ink = colour; kind = look; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); gl_PointSize = look.y; }`,
    fragmentShader: `varying vec3 ink; varying vec2 kind;
      // Distance from the edge of the shape, in half sizes of the point; negative within.
      float distanceTo(float shape, vec2 p) {
        vec2 q = abs(p);
        if (shape < 1.5) return length(p) - 0.7;
        if (shape < 2.5) return (q.x + q.y - 0.85) * 0.7071;
        if (shape < 3.5) return abs(length(p) - 0.66) - 0.14;
        if (shape < 4.5) return max(q.x - 0.6, q.y - 0.45);
        if (shape < 5.5) return max(q.x - 0.8, q.y - 0.2);
        vec2 turned = abs(vec2(p.x + p.y, p.x - p.y)) * 0.7071;
        return max(min(turned.x, turned.y) - 0.16, max(turned.x, turned.y) - 0.75);
      }
      void main() {
        float pixel = 2.0 / kind.y;
        float d = distanceTo(kind.x, gl_PointCoord * 2.0 - 1.0);
        float inside = 1.0 - smoothstep(-pixel, 0.0, d);
        float edge = (1.0 - smoothstep(0.7 * pixel, 1.7 * pixel, d)) * (kind.x < 0.5 ? 0.0 : 0.75);
        gl_FragColor = vec4(mix(vec3(0.01), ink, inside), max(inside, edge));
        #include <colorspace_fragment>
      }`,
  });
}
