// Camera, light, ground and sky: everything around the character.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";

interface Theme {
  /** The sky overhead and where it meets the floor, the floor at one's feet, its lines. */
  top: number;
  horizon: number;
  floor: number;
  line: number;
  shadow: number;
  sun: number;
  rim: number;
  fill: number;
}
const LIGHT_THEME: Theme = { top: 0xb9cbe0, horizon: 0xf1f3f6, floor: 0xd9dee5, line: 0x93a1b3, shadow: 0.24, sun: 2.5, rim: 0.7, fill: 1.6 };
const DARK_THEME: Theme = { top: 0x0b0e13, horizon: 0x29313c, floor: 0x181d24, line: 0x6c7c92, shadow: 0.5, sun: 2.1, rim: 0.8, fill: 1.15 };
/** From where a character is first seen, and which share of the picture it fills. */
const SIDES = { above: new THREE.Vector3(0.55, 0.38, 1).normalize(), aside: new THREE.Vector3(0.12, 0.16, 1).normalize() };
const ROOM = 0.86;
/** How long the camera takes to come home [ms]; no time when less motion is asked for. */
const HOMEWARD = 350;
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

export class Stage {
  readonly renderer: THREE.WebGLRenderer;
  readonly scene = new THREE.Scene();
  readonly camera = new THREE.PerspectiveCamera(40, 1, 0.01, 1000);
  readonly controls: OrbitControls;
  /** Size of the character: half the diagonal of its box [m]. */
  radius = 1;
  private readonly sun = new THREE.DirectionalLight(0xfff4e4, 2.5);
  private readonly rim = new THREE.DirectionalLight(0xd6e6ff, 1);
  private readonly fill = new THREE.HemisphereLight(0xffffff, 0xb9b4ad, 1.2);
  private readonly shade: THREE.Mesh<THREE.PlaneGeometry, THREE.ShadowMaterial>;
  private readonly grid: THREE.Mesh<THREE.PlaneGeometry, THREE.ShaderMaterial>;
  private readonly sky: THREE.Mesh<THREE.SphereGeometry, THREE.ShaderMaterial>;
  private dirty = true;
  private home = { target: new THREE.Vector3(), position: new THREE.Vector3(0, 0, 3) };
  /** The way home, while the camera is on it. */
  private way: { since: number; target: THREE.Vector3; position: THREE.Vector3 } | null = null;

  constructor(private readonly canvas: HTMLCanvasElement, options: { antialias: boolean; shadows: boolean }) {
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: options.antialias, powerPreference: "high-performance" });
    this.renderer.shadowMap.enabled = options.shadows;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.renderer.toneMapping = THREE.NeutralToneMapping;

    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.radius = 5;
    this.scene.add(this.sun, this.sun.target, this.rim, this.rim.target, this.fill);

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
    this.controls.addEventListener("start", () => (this.way = null));
    this.controls.addEventListener("change", () => this.touch());

    const dark = matchMedia("(prefers-color-scheme: dark)");
    const theme = () => this.dress(dark.matches ? DARK_THEME : LIGHT_THEME);
    dark.addEventListener("change", theme);
    theme();
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }

  /** Something changed: the next frame is drawn. */
  touch(): void {
    this.dirty = true;
  }

  /** Draws if anything changed. */
  draw(): boolean {
    if (this.way) this.goOn(this.way);
    if (!this.dirty) return false;
    this.dirty = false;
    this.sky.position.copy(this.camera.position);
    this.sky.scale.setScalar(this.camera.far * 0.5);
    this.renderer.render(this.scene, this.camera);
    return true;
  }

  /** Fits camera, light and ground to a character in this box. */
  fit(box: THREE.Box3, groundHeight: number, from: keyof typeof SIDES = "above"): void {
    const centre = box.getCenter(new THREE.Vector3());
    const radius = Math.max(0.5 * box.getSize(new THREE.Vector3()).length(), 1e-3);
    this.radius = radius;
    this.camera.near = radius / 100;
    this.camera.far = radius * 400;
    this.controls.minDistance = radius / 20;
    this.controls.maxDistance = radius * 40;

    this.sun.position.copy(centre).add(new THREE.Vector3(0.8, 2.4, 1.3).multiplyScalar(radius * 2));
    this.sun.target.position.copy(centre);
    this.rim.position.copy(centre).add(new THREE.Vector3(-1.2, 0.9, -1.6).multiplyScalar(radius * 2));
    this.rim.target.position.copy(centre);
    const reach = radius * 2.2;
    const shadow = this.sun.shadow.camera;
    [shadow.left, shadow.right, shadow.top, shadow.bottom] = [-reach, reach, reach, -reach];
    [shadow.near, shadow.far] = [radius * 0.1, radius * 14];
    shadow.updateProjectionMatrix();
    this.sun.shadow.bias = -0.0005;
    this.sun.shadow.normalBias = radius * 0.006;

    const cell = 10 ** Math.round(Math.log10(radius)) / 2;
    for (const mesh of [this.shade, this.grid]) {
      mesh.scale.setScalar(radius * 60);
      mesh.position.set(centre.x, groundHeight, centre.z);
    }
    const { uniforms } = this.grid.material;
    uniforms.cell!.value = cell;
    uniforms.reach!.value = radius * 16;
    (uniforms.centre!.value as THREE.Vector3).copy(this.grid.position);

    this.home.target.copy(centre);
    this.home.position.copy(centre).addScaledVector(SIDES[from], this.distanceFor(box, SIDES[from]));
    this.way = null;
    this.place(this.home.target, this.home.position);
  }

  /** How far from the box's centre the camera must stand to see all of it, with some room around. */
  private distanceFor(box: THREE.Box3, side: THREE.Vector3): number {
    const centre = box.getCenter(new THREE.Vector3());
    const right = new THREE.Vector3(0, 1, 0).cross(side).normalize();
    const up = side.clone().cross(right);
    const half = Math.tan(((this.camera.fov / 2) * Math.PI) / 180) * ROOM;
    const corner = new THREE.Vector3();
    let distance = this.radius;
    for (let k = 0; k < 8; k++) {
      corner.set(k & 1 ? box.max.x : box.min.x, k & 2 ? box.max.y : box.min.y, k & 4 ? box.max.z : box.min.z).sub(centre);
      const aside = Math.max(Math.abs(corner.dot(up)), Math.abs(corner.dot(right)) / this.camera.aspect);
      distance = Math.max(distance, corner.dot(side) + aside / half);
    }
    return distance;
  }

  /** Takes camera, light and ground along. */
  go(by: THREE.Vector3): void {
    const level = by.clone().setY(0);
    for (const object of [this.camera, this.sun, this.sun.target, this.rim, this.rim.target]) object.position.add(level);
    for (const mesh of [this.shade, this.grid]) mesh.position.add(level);
    (this.grid.material.uniforms.centre!.value as THREE.Vector3).copy(this.grid.position);
    this.controls.target.add(level);
    this.home.target.add(level);
    this.home.position.add(level);
    this.controls.update();
    this.touch();
  }

  /** The whole character in view again. */
  goHome(): void {
    if (stillness.matches) return this.place(this.home.target, this.home.position);
    this.way = { since: performance.now(), target: this.controls.target.clone(), position: this.camera.position.clone() };
  }

  private goOn(way: { since: number; target: THREE.Vector3; position: THREE.Vector3 }): void {
    const share = Math.min((performance.now() - way.since) / HOMEWARD, 1);
    const eased = share * share * (3 - 2 * share);
    if (share === 1) this.way = null;
    this.place(way.target.clone().lerp(this.home.target, eased), way.position.clone().lerp(this.home.position, eased));
  }

  private place(target: THREE.Vector3, position: THREE.Vector3): void {
    this.controls.target.copy(target);
    this.camera.position.copy(position);
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.camera.updateMatrixWorld();
    this.touch();
  }

  /** Turns the camera about its target, by angles in radians, and scales its distance. */
  turn(aside: number, up: number, distance: number): void {
    this.way = null;
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
    this.sun.intensity = theme.sun;
    this.rim.intensity = theme.rim;
    this.fill.intensity = theme.fill;
    this.touch();
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.touch();
  }
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
