// Camera, light, ground and sky: everything around the character.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { RoomEnvironment } from "three/addons/environments/RoomEnvironment.js";

interface Theme {
  /** The sky overhead and where it meets the floor, the floor at one's feet, its lines. */
  top: number;
  horizon: number;
  floor: number;
  line: number;
  shadow: number;
}
const LIGHT_THEME: Theme = { top: 0xb9cbe0, horizon: 0xf1f3f6, floor: 0xd9dee5, line: 0x93a1b3, shadow: 0.3 };
const DARK_THEME: Theme = { top: 0x0b0e13, horizon: 0x29313c, floor: 0x181d24, line: 0x6c7c92, shadow: 0.55 };

/** From where the character is seen: how far from its front to its left [rad], and how far up. */
export const VIEWS = {
  three_quarter: [0.55, 0.3],
  front: [0, 0.1],
  side: [Math.PI / 2, 0.06],
  top: [0, Math.PI / 2 - 0.02],
  /** What moves in a plane is seen from aside, so that what the mouse does is what it is led to. */
  aside: [0.12, 0.16],
} as const;
export type View = keyof typeof VIEWS;

/** Which share of the picture the character fills, and a limb that is chosen. */
const [ROOM, LIMB_ROOM] = [0.9, 0.5];
/** And what moves about by itself, as built-in scenes do. */
export const MOVING_ROOM = 0.7;
/** A limb is seen from no nearer than so many times the size of the character, and from this far to either side of where one looks from when something is in the way [rad]. */
const LIMB_DISTANCE = 1.4;
const AROUND = [0, 0.5, -0.5, 1, -1, 1.6, -1.6, 2.3, -2.3, Math.PI];
/** The shadow reaches so many sizes of the character at most. */
const MOST_SHADOW = 6;
/** How long the camera takes to where it is sent [ms]; no time when less motion is asked for. */
const WAY = 350;
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

/** Shadows are drawn into so many pixels, a side. */
const SHADOW_PIXELS = 2048;
/** Light of the room, the sun that casts the shadow, and the rim from behind. */
const LIGHTS = { room: 0.75, sun: 1.9, rim: 0.6 };
/** The room is blurred by this angle [rad], and drawn into so many pixels, a side, of 1.4 degrees each. */
const [ROOM_BLUR, ROOM_PIXELS] = [0.04, 64];

/** three takes no room smaller than 256 pixels a side. So many show no more of what is blurred by more
 * than a pixel of ours, and without a graphics card they take most of the time to the first picture. */
class RoomMaker extends THREE.PMREMGenerator {
  declare protected _cubeSize: number;
  protected _setSize(): void {
    this._cubeSize = ROOM_PIXELS;
  }
}

/** Pixels of the picture to one of the screen: never more than the first; while it moves too slowly, fewer, down to the second. */
const [MOST_RATIO, LEAST_RATIO] = [2, 0.75];
/** What is slow: this long between two pictures [ms], on the mean of so many. */
const [SLOW, COUNTED] = [28, 20];

export class Stage {
  readonly renderer: THREE.WebGLRenderer;
  readonly scene = new THREE.Scene();
  readonly camera = new THREE.PerspectiveCamera(35, 1, 0.01, 1000);
  readonly controls: OrbitControls;
  /** Size of the character: half the diagonal of its box [m]. */
  radius = 1;
  private readonly sun = new THREE.DirectionalLight(0xfff6ea, LIGHTS.sun);
  private readonly rim = new THREE.DirectionalLight(0xdfeaff, LIGHTS.rim);
  private readonly shade: THREE.Mesh<THREE.PlaneGeometry, THREE.ShadowMaterial>;
  private readonly grid: THREE.Mesh<THREE.PlaneGeometry, THREE.ShaderMaterial>;
  private readonly sky: THREE.Mesh<THREE.SphereGeometry, THREE.ShaderMaterial>;
  private dirty = true;
  /** The light of the room is to be made: not before there is something to be lit. */
  private roomWaits = false;
  private ground = 0;
  /** Which way the character looks, level. */
  private front = new THREE.Vector3(0, 0, 1);
  /** Whether a hand turned or moved the camera since it was last sent somewhere. */
  byHand = false;
  /** The way of the camera, while it is on one. */
  private way: { since: number; from: Place; to: Place } | null = null;
  /** Pixels of the picture to one of the screen while it moves; whether it has no more than those now; and what tells whether they are too many. */
  private ratio = MOST_RATIO;
  private coarse = false;
  private pace = { last: 0, sum: 0, count: 0 };
  /** The picture is to have other pixels. That clears it, so it is done as it is drawn again and not before. */
  private resized = false;

  constructor(private readonly canvas: HTMLCanvasElement, options: { antialias: boolean; shadows: boolean; room: boolean }) {
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: options.antialias, powerPreference: "high-performance" });
    this.renderer.shadowMap.enabled = options.shadows;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    // Shadows change when something moves, not when the camera does.
    this.renderer.shadowMap.autoUpdate = false;
    this.renderer.toneMapping = THREE.ACESFilmicToneMapping;

    this.roomWaits = options.room;
    if (!options.room) this.scene.add(new THREE.HemisphereLight(0xffffff, 0x9a938c, 2));

    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(SHADOW_PIXELS, SHADOW_PIXELS);
    this.sun.shadow.radius = 4;
    this.scene.add(this.sun, this.sun.target, this.rim, this.rim.target);

    // The floor has no edge: sky and floor are one backdrop, on which only shadows and lines are drawn.
    const plane = new THREE.PlaneGeometry(1, 1).rotateX(-Math.PI / 2);
    this.shade = new THREE.Mesh(plane, new THREE.ShadowMaterial({ fog: false, depthWrite: false }));
    this.shade.receiveShadow = true;
    this.grid = new THREE.Mesh(plane, gridMaterial());
    this.sky = new THREE.Mesh(new THREE.SphereGeometry(1, 32, 32), skyMaterial());
    this.sky.renderOrder = -3;
    this.grid.renderOrder = -2;
    this.shade.renderOrder = -1;
    this.sky.frustumCulled = false;
    this.scene.add(this.sky, this.grid, this.shade);

    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = false;
    this.controls.addEventListener("start", () => {
      this.way = null;
      this.byHand = true;
    });
    this.controls.addEventListener("change", () => {
      this.stayAbove();
      this.dirty = true;
    });

    const dark = matchMedia("(prefers-color-scheme: dark)");
    const theme = () => this.dress(dark.matches ? DARK_THEME : LIGHT_THEME);
    dark.addEventListener("change", theme);
    theme();
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }

  /** The light of a room, made here: every material of a file looks as it does in other viewers. */
  private lightRoom(): void {
    this.roomWaits = false;
    const maker = new RoomMaker(this.renderer);
    const room = new RoomEnvironment();
    this.scene.environment = maker.fromScene(room, ROOM_BLUR).texture;
    this.scene.environmentIntensity = LIGHTS.room;
    room.dispose();
    maker.dispose();
  }

  /** Something moved or looks different: the next frame is drawn, with its shadows. */
  touch(): void {
    this.dirty = this.renderer.shadowMap.needsUpdate = true;
  }

  /** Draws if anything changed; while it is `empty`, nothing but the sky and the floor are there. */
  draw(empty: boolean): boolean {
    if (this.way) this.goOn(this.way);
    const now = performance.now();
    if (!this.dirty) {
      // Once all is still, the picture is as sharp as the screen.
      if (!this.coarse || now - this.pace.last <= 300) return false;
      this.sharpen(false);
    } else {
      this.measure(now);
    }
    this.dirty = false;
    if (this.resized) this.takeSize();
    if (this.roomWaits && !empty) this.lightRoom();
    this.sky.position.copy(this.camera.position);
    this.sky.scale.setScalar(this.camera.far * 0.5);
    this.renderer.render(this.scene, this.camera);
    return true;
  }

  /** Tells, when asked, whether all that was drawn by now is in the picture: the graphics card is behind. */
  done(): () => boolean {
    const gl = this.renderer.getContext() as WebGL2RenderingContext;
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    return () => fence === null || gl.getSyncParameter(fence, gl.SYNC_STATUS) === gl.SIGNALED;
  }

  /** The picture as it is drawn now, rows from below; of one thing alone, everything else is `key`. For tests. */
  snapshot(alone: THREE.Object3D | null, key = 0xff00ff): { width: number; height: number; data: Uint8Array } {
    const others = alone ? this.scene.children.filter((child) => child !== alone && child.visible && !(child instanceof THREE.Light)) : [];
    const gl = this.renderer.getContext();
    for (const other of others) other.visible = false;
    if (this.roomWaits) this.lightRoom();
    if (this.resized) this.takeSize();
    this.renderer.setClearColor(key);
    this.renderer.render(this.scene, this.camera);
    for (const other of others) other.visible = true;
    const [width, height] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
    const data = new Uint8Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, data);
    this.touch();
    return { width, height, data };
  }

  /** Draws what is in a box at once, for whoever looks at the canvas before it is drawn again: all of it is in the middle of the picture, of an `aspect`, seen
   * from where one looks from now. Some things are left out. */
  photograph(box: THREE.Box3, aspect: number, without: THREE.Object3D[]): HTMLCanvasElement {
    if (this.resized) this.takeSize();
    const { camera } = this;
    const hidden = without.filter(({ visible }) => visible);
    const [own, position, turn] = [camera.aspect, camera.position.clone(), camera.quaternion.clone()];
    const way = position.clone().sub(this.controls.target).normalize();
    camera.aspect = Math.min(aspect, own);
    const place = this.placeAlong(way, box.getCenter(new THREE.Vector3()), cornersOf(box), ROOM);
    camera.aspect = own;
    camera.position.copy(place.position);
    camera.lookAt(place.target);
    for (const object of hidden) object.visible = false;
    this.renderer.shadowMap.needsUpdate = true;
    this.renderer.render(this.scene, camera);
    for (const object of hidden) object.visible = true;
    camera.position.copy(position);
    camera.quaternion.copy(turn);
    camera.updateMatrixWorld();
    this.touch();
    return this.renderer.domElement;
  }

  /** While pictures follow one another too slowly, they have fewer pixels. */
  private measure(now: number): void {
    const { pace } = this;
    const since = now - pace.last;
    pace.last = now;
    if (since > 300) Object.assign(pace, { sum: 0, count: 0 }); // nothing was moving
    else Object.assign(pace, { sum: pace.sum + since, count: pace.count + 1 });
    if (pace.count === 3 && this.ratio < MOST_RATIO && !this.coarse) this.sharpen(true);
    if (pace.count < COUNTED) return;
    const slow = pace.sum / pace.count > SLOW;
    Object.assign(pace, { sum: 0, count: 0 });
    if (!slow || this.ratio === LEAST_RATIO) return;
    this.ratio = Math.max(0.75 * Math.min(this.ratio, devicePixelRatio), LEAST_RATIO);
    this.sharpen(true);
  }

  private sharpen(coarse: boolean): void {
    this.coarse = coarse;
    this.resize();
  }

  /** Fits camera, light and ground to a character in this box, which looks towards `front`. All of `points` are in the picture. */
  fit(box: THREE.Box3, groundHeight: number, front = this.front, view: View = "three_quarter", points = cornersOf(box), room = ROOM): void {
    const centre = box.getCenter(new THREE.Vector3());
    const radius = Math.max(0.5 * box.getSize(new THREE.Vector3()).length(), 1e-3);
    this.radius = radius;
    this.ground = groundHeight;
    this.front.copy(front);
    this.camera.near = radius / 100;
    this.camera.far = radius * 400;
    this.controls.minDistance = radius / 20;
    this.controls.maxDistance = radius * 40;

    const cell = 10 ** Math.round(Math.log10(radius)) / 2;
    for (const mesh of [this.shade, this.grid]) {
      mesh.scale.setScalar(radius * 60);
      mesh.position.set(centre.x, groundHeight, centre.z);
    }
    const { uniforms } = this.grid.material;
    uniforms.cell!.value = cell;
    uniforms.reach!.value = radius * 16;
    (uniforms.centre!.value as THREE.Vector3).copy(this.grid.position);

    this.way = null;
    this.byHand = false;
    this.place(this.placeFor(view, box, points, room));
    this.light(centre, view);
  }

  /** The sun stands on the camera's side, to its left and high; the rim behind. The light of the room turns along. */
  private light(centre: THREE.Vector3, view: View): void {
    const { radius } = this;
    const turn = Math.atan2(this.front.x, this.front.z) + VIEWS[view][0];
    const from = (aside: number, up: number) =>
      new THREE.Vector3(Math.sin(turn + aside) * Math.cos(up), Math.sin(up), Math.cos(turn + aside) * Math.cos(up));
    this.sun.position.copy(centre).addScaledVector(from(-0.7, 0.95), radius * 6);
    this.sun.target.position.copy(centre);
    this.rim.position.copy(centre).addScaledVector(from(2.5, 0.5), radius * 6);
    this.rim.target.position.copy(centre);
    this.scene.environmentRotation.set(0, turn, 0);
    this.castWithin(radius * 2);
  }

  /** Whether the camera is on its way. */
  get glides(): boolean {
    return this.way !== null;
  }

  /** What lies in this box casts its shadow too. */
  spread(box: THREE.Box3): void {
    const { target } = this.sun;
    const far = cornersOf(box).reduce((most, corner) => Math.max(most, corner.distanceTo(target.position)), 0);
    this.castWithin(Math.min(Math.max(1.05 * far, 2 * this.radius), MOST_SHADOW * this.radius));
    this.touch();
  }

  /** Shadows of what is this near to where the sun looks. */
  private castWithin(reach: number): void {
    const { radius } = this;
    const { shadow } = this.sun;
    const distance = this.sun.position.distanceTo(this.sun.target.position);
    Object.assign(shadow.camera, { left: -reach, right: reach, top: reach, bottom: -reach, near: Math.min(radius, distance - reach), far: distance + Math.max(reach, 6 * radius) });
    shadow.camera.updateProjectionMatrix();
    // A surface is looked up this far before itself: a few pixels of the shadow, so that it does not shade itself in stripes.
    shadow.normalBias = (5 * 2 * reach) / SHADOW_PIXELS;
    shadow.bias = -0.0002;
  }

  /** Where the camera stands to see points from a side, all of them within a box. */
  private placeFor(view: View, box: THREE.Box3, points: THREE.Vector3[], room = ROOM): Place {
    const [aside, up] = VIEWS[view];
    const turn = Math.atan2(this.front.x, this.front.z) + aside;
    const way = new THREE.Vector3(Math.sin(turn) * Math.cos(up), Math.sin(up), Math.cos(turn) * Math.cos(up));
    return this.placeAlong(way, box.getCenter(new THREE.Vector3()), points, room);
  }

  /** Where the camera stands, looking against `way`, to see all points within a share of the picture: they are in its middle, and as large as that lets them be. */
  private placeAlong(way: THREE.Vector3, centre: THREE.Vector3, points: THREE.Vector3[], room: number): Place {
    const right = new THREE.Vector3(0, 1, 0).cross(way).normalize();
    const up = way.clone().cross(right);
    const half = Math.tan(((this.camera.fov / 2) * Math.PI) / 180) * room;
    const target = centre.clone();
    const from = new THREE.Vector3();
    let distance = 2 * this.camera.near;
    for (const [axis, width] of [[right, half * this.camera.aspect], [up, half]] as const) {
      // Both edges of the picture touch a point: x − w d ≤ shift − w z and −x − w d ≤ −shift − w z, for all of them.
      let [most, least] = [-Infinity, -Infinity];
      for (const point of points) {
        const [x, z] = [from.subVectors(point, centre).dot(axis), from.dot(way)];
        most = Math.max(most, x + width * z);
        least = Math.max(least, -x + width * z);
      }
      target.addScaledVector(axis, (most - least) / 2);
      distance = Math.max(distance, (most + least) / (2 * width));
    }
    return { target, position: target.clone().addScaledVector(way, distance) };
  }

  /** Takes camera, light and ground along; the ground stays level. */
  go(by: THREE.Vector3): void {
    const level = by.clone().setY(0);
    for (const object of [this.sun, this.sun.target, this.rim, this.rim.target]) object.position.add(by);
    for (const mesh of [this.shade, this.grid]) mesh.position.add(level);
    (this.grid.material.uniforms.centre!.value as THREE.Vector3).copy(this.grid.position);
    for (const point of [this.camera.position, this.controls.target]) point.add(by);
    this.controls.update();
    this.touch();
  }

  /** Sees a box from one of the sides. */
  look(view: View, box: THREE.Box3): void {
    this.send(this.placeFor(view, box, cornersOf(box)));
  }

  /** Sees a box whole, from where one looks now. */
  frame(box: THREE.Box3, room = ROOM): void {
    if (!(box.getSize(new THREE.Vector3()).length() > 0)) return; // there is nothing to be seen
    const way = this.camera.position.clone().sub(this.controls.target).normalize();
    this.send(this.placeAlong(way, box.getCenter(new THREE.Vector3()), cornersOf(box), room));
  }

  /** Sees a limb, with what is around it: from where one looks now, or from a little aside, where it can be `seen` from a place. */
  frameLimb(box: THREE.Box3, seen: (from: THREE.Vector3, target: THREE.Vector3) => boolean): void {
    const way = this.camera.position.clone().sub(this.controls.target).normalize();
    const places = AROUND.map((turn) => {
      const turned = way.clone().applyAxisAngle(new THREE.Vector3(0, 1, 0), turn);
      const to = this.placeAlong(turned, box.getCenter(new THREE.Vector3()), cornersOf(box), LIMB_ROOM);
      // A finger does not fill the picture: one sees where it belongs.
      const nearest = LIMB_DISTANCE * this.radius;
      if (to.position.distanceTo(to.target) < nearest) to.position.copy(to.target).addScaledVector(turned, nearest);
      return to;
    });
    this.send(places.find(({ position, target }) => seen(position, target)) ?? places[0]!);
  }

  /** Whether all of a box is in the picture. */
  sees(box: THREE.Box3): boolean {
    return this.seesAll(cornersOf(box));
  }

  /** Whether all points are in the picture. */
  seesAll(points: THREE.Vector3[]): boolean {
    this.camera.updateMatrixWorld();
    const seen = new THREE.Vector3();
    return points.every((point) => {
      const { x, y, z } = seen.copy(point).project(this.camera);
      return Math.abs(x) <= 1 && Math.abs(y) <= 1 && z <= 1;
    });
  }

  private send(to: Place): void {
    this.byHand = false;
    if (stillness.matches) return this.place(to);
    this.way = { since: performance.now(), from: { target: this.controls.target.clone(), position: this.camera.position.clone() }, to };
  }

  private goOn({ since, from, to }: { since: number; from: Place; to: Place }): void {
    const share = Math.min((performance.now() - since) / WAY, 1);
    const eased = share * share * (3 - 2 * share);
    if (share === 1) this.way = null;
    this.place({ target: from.target.clone().lerp(to.target, eased), position: from.position.clone().lerp(to.position, eased) });
  }

  private place({ target, position }: Place): void {
    this.controls.target.copy(target);
    this.camera.position.copy(position);
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.stayAbove();
    this.camera.updateMatrixWorld();
    this.dirty = true;
  }

  /** The camera and what it looks at stay above the floor. */
  private stayAbove(): void {
    const { position } = this.camera;
    const lowest = this.ground + 0.02 * this.radius;
    if (position.y >= lowest && this.controls.target.y >= this.ground) return;
    position.y = Math.max(position.y, lowest);
    this.controls.target.y = Math.max(this.controls.target.y, this.ground);
    this.camera.lookAt(this.controls.target);
  }

  /** Turns the camera about its target, by angles in radians, and scales its distance. */
  turn(aside: number, up: number, distance: number): void {
    this.way = null;
    this.byHand = true;
    const offset = this.camera.position.clone().sub(this.controls.target);
    const sphere = new THREE.Spherical().setFromVector3(offset);
    sphere.theta += aside;
    sphere.phi = Math.min(Math.max(sphere.phi + up, 0.05), Math.PI - 0.05);
    sphere.radius *= distance;
    this.camera.position.copy(this.controls.target).add(offset.setFromSpherical(sphere));
    this.controls.update();
  }

  private dress(theme: Theme): void {
    const { uniforms } = this.sky.material;
    for (const part of ["top", "horizon", "floor"] as const) (uniforms[part]!.value as THREE.Color).set(theme[part]);
    (this.grid.material.uniforms.line!.value as THREE.Color).set(theme.line);
    this.shade.material.opacity = theme.shadow;
    this.touch();
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.resized = this.dirty = true;
  }

  private takeSize(): void {
    this.resized = false;
    const most = Math.min(devicePixelRatio, MOST_RATIO);
    this.renderer.setPixelRatio(this.coarse ? Math.min(this.ratio, most) : most);
    this.renderer.setSize(this.canvas.clientWidth, this.canvas.clientHeight, false);
  }
}

function cornersOf({ min, max }: THREE.Box3): THREE.Vector3[] {
  return [0, 1, 2, 3, 4, 5, 6, 7].map((k) => new THREE.Vector3(k & 1 ? max.x : min.x, k & 2 ? max.y : min.y, k & 4 ? max.z : min.z));
}

interface Place {
  target: THREE.Vector3;
  position: THREE.Vector3;
}

/** From the floor at one's feet to the horizon to the sky overhead. */
function skyMaterial(): THREE.ShaderMaterial {
  return new THREE.ShaderMaterial({
    side: THREE.BackSide,
    depthWrite: false,
    uniforms: { top: { value: new THREE.Color() }, horizon: { value: new THREE.Color() }, floor: { value: new THREE.Color() } },
    vertexShader: `varying vec3 direction;
      void main() { direction = position; gl_Position = (projectionMatrix * modelViewMatrix * vec4(position, 1.0)).xyww; }`,
    fragmentShader: `varying vec3 direction; uniform vec3 top; uniform vec3 horizon; uniform vec3 floor;
      void main() {
        float up = normalize(direction).y;
        vec3 colour = up > 0.0 ? mix(horizon, top, pow(up, 0.7)) : mix(horizon, floor, smoothstep(0.0, 0.75, -up));
        gl_FragColor = vec4(colour, 1.0);
        #include <colorspace_fragment>
        // Half a step of the screen's colours, so that the slow change shows no bands.
        gl_FragColor.rgb += (fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453) - 0.5) / 255.0;
      }`,
  });
}

/** Lines on the floor, every fifth stronger, fading away from the character. */
function gridMaterial(): THREE.ShaderMaterial {
  return new THREE.ShaderMaterial({
    transparent: true,
    depthWrite: false,
    uniforms: {
      line: { value: new THREE.Color() },
      centre: { value: new THREE.Vector3() },
      cell: { value: 1 },
      reach: { value: 10 },
    },
    vertexShader: `varying vec3 place;
      void main() { vec4 world = modelMatrix * vec4(position, 1.0); place = world.xyz; gl_Position = projectionMatrix * viewMatrix * world; }`,
    fragmentShader: `varying vec3 place; uniform vec3 line; uniform vec3 centre; uniform float cell; uniform float reach;
      float lines(vec2 at) {
        vec2 width = fwidth(at);
        vec2 near = abs(fract(at - 0.5) - 0.5) / max(width, 1e-6);
        // Where a cell is thinner than some pixels its lines melt away.
        return (1.0 - min(min(near.x, near.y), 1.0)) * (1.0 - smoothstep(0.15, 0.5, max(width.x, width.y)));
      }
      void main() {
        float fade = 1.0 - smoothstep(0.15, 1.0, distance(place, centre) / reach);
        float strength = max(0.22 * lines(place.xz / cell), 0.45 * lines(place.xz / (cell * 5.0)));
        gl_FragColor = vec4(line, strength * fade);
        #include <colorspace_fragment>
      }`,
  });
}
