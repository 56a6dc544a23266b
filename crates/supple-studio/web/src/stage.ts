// Camera, light, ground and sky: everything around the character.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";

const LIGHT_THEME = { top: 0x8fb3d9, horizon: 0xe9eef4, ground: 0xdfe3e8, line: "#b7c0cc", sun: 2.6, fill: 1.5 };
const DARK_THEME = { top: 0x0d1219, horizon: 0x2a323d, ground: 0x4a525e, line: "#66707e", sun: 2.0, fill: 1.4 };

export class Stage {
  readonly renderer: THREE.WebGLRenderer;
  readonly scene = new THREE.Scene();
  readonly camera = new THREE.PerspectiveCamera(40, 1, 0.01, 1000);
  readonly controls: OrbitControls;
  /** Size of the character: half the diagonal of its box [m]. */
  radius = 1;
  private readonly sun = new THREE.DirectionalLight(0xffffff, 2.5);
  private readonly fill = new THREE.HemisphereLight(0xffffff, 0x8a8f98, 1.2);
  private readonly ground: THREE.Mesh<THREE.PlaneGeometry, THREE.MeshStandardMaterial>;
  private readonly sky: THREE.Mesh<THREE.SphereGeometry, THREE.ShaderMaterial>;
  private dirty = true;
  private home = { target: new THREE.Vector3(), position: new THREE.Vector3(0, 0, 3) };

  constructor(private readonly canvas: HTMLCanvasElement, options: { antialias: boolean; shadows: boolean }) {
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: options.antialias, powerPreference: "high-performance" });
    this.renderer.shadowMap.enabled = options.shadows;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.renderer.toneMapping = THREE.NeutralToneMapping;

    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.scene.add(this.sun, this.sun.target, this.fill);

    this.ground = new THREE.Mesh(
      new THREE.PlaneGeometry(1, 1).rotateX(-Math.PI / 2),
      new THREE.MeshStandardMaterial({ roughness: 1 }),
    );
    this.ground.receiveShadow = true;
    this.scene.add(this.ground);

    this.sky = new THREE.Mesh(
      new THREE.SphereGeometry(1, 24, 16),
      new THREE.ShaderMaterial({
        side: THREE.BackSide,
        depthWrite: false,
        uniforms: { top: { value: new THREE.Color() }, horizon: { value: new THREE.Color() } },
        vertexShader: `varying vec3 direction;
          void main() { direction = position; gl_Position = (projectionMatrix * modelViewMatrix * vec4(position, 1.0)).xyww; }`,
        fragmentShader: `varying vec3 direction; uniform vec3 top; uniform vec3 horizon;
          void main() {
            float up = clamp(normalize(direction).y, 0.0, 1.0);
            gl_FragColor = vec4(mix(horizon, top, pow(up, 0.6)), 1.0);
            #include <colorspace_fragment>
          }`,
      }),
    );
    this.sky.renderOrder = -1;
    this.sky.frustumCulled = false;
    this.scene.add(this.sky);

    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = false;
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
    if (!this.dirty) return false;
    this.dirty = false;
    this.sky.position.copy(this.camera.position);
    this.sky.scale.setScalar(this.camera.far * 0.5);
    this.renderer.render(this.scene, this.camera);
    return true;
  }

  /** Fits camera, light and ground to a character in this box. */
  fit(box: THREE.Box3, groundHeight: number): void {
    const centre = box.getCenter(new THREE.Vector3());
    const radius = Math.max(0.5 * box.getSize(new THREE.Vector3()).length(), 1e-3);
    this.radius = radius;
    this.camera.near = radius / 100;
    this.camera.far = radius * 400;
    this.controls.minDistance = radius / 20;
    this.controls.maxDistance = radius * 40;

    this.sun.position.copy(centre).add(new THREE.Vector3(0.8, 2.2, 1.2).multiplyScalar(radius * 2));
    this.sun.target.position.copy(centre);
    const reach = radius * 2.2;
    const shadow = this.sun.shadow.camera;
    [shadow.left, shadow.right, shadow.top, shadow.bottom] = [-reach, reach, reach, -reach];
    [shadow.near, shadow.far] = [radius * 0.1, radius * 14];
    shadow.updateProjectionMatrix();
    this.sun.shadow.bias = -0.0005;
    this.sun.shadow.normalBias = radius * 0.006;

    const cell = 10 ** Math.round(Math.log10(radius)) / 2;
    const size = cell * 800;
    this.ground.scale.setScalar(size);
    this.ground.position.set(0, groundHeight, 0);
    this.ground.material.map?.repeat.setScalar(size / cell / 2);
    this.scene.fog = new THREE.Fog(this.horizon(), radius * 8, radius * 45);

    this.home.target.copy(centre);
    this.home.position.copy(centre).add(new THREE.Vector3(0.55, 0.42, 1).normalize().multiplyScalar(radius * 2.6));
    this.goHome();
  }

  goHome(): void {
    this.controls.target.copy(this.home.target);
    this.camera.position.copy(this.home.position);
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.touch();
  }

  /** Turns the camera about its target, by angles in radians, and scales its distance. */
  turn(aside: number, up: number, distance: number): void {
    const offset = this.camera.position.clone().sub(this.controls.target);
    const sphere = new THREE.Spherical().setFromVector3(offset);
    sphere.theta += aside;
    sphere.phi = Math.min(Math.max(sphere.phi + up, 0.05), Math.PI - 0.05);
    sphere.radius *= distance;
    this.camera.position.copy(this.controls.target).add(offset.setFromSpherical(sphere));
    this.controls.update();
  }

  private horizon(): THREE.Color {
    return this.sky.material.uniforms.horizon!.value as THREE.Color;
  }

  private dress(theme: typeof LIGHT_THEME): void {
    (this.sky.material.uniforms.top!.value as THREE.Color).set(theme.top);
    this.horizon().set(theme.horizon);
    this.sun.intensity = theme.sun;
    this.fill.intensity = theme.fill;
    this.ground.material.color.set(0xffffff);
    const repeat = this.ground.material.map?.repeat.x ?? 1;
    this.ground.material.map?.dispose();
    this.ground.material.map = gridTexture(theme.ground, theme.line);
    this.ground.material.map.repeat.setScalar(repeat);
    this.ground.material.map.anisotropy = 8;
    this.ground.material.needsUpdate = true;
    if (this.scene.fog) this.scene.fog.color.copy(this.horizon());
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

/** Two by two cells with their lines. */
function gridTexture(ground: number, line: string): THREE.CanvasTexture {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 256;
  const pen = canvas.getContext("2d")!;
  pen.fillStyle = `#${ground.toString(16).padStart(6, "0")}`;
  pen.fillRect(0, 0, 256, 256);
  pen.fillStyle = line;
  for (const k of [0, 128]) {
    const width = k === 0 ? 3 : 2;
    pen.fillRect(k, 0, width, 256);
    pen.fillRect(0, k, 256, width);
  }
  const texture = new THREE.CanvasTexture(canvas);
  texture.wrapS = texture.wrapT = THREE.RepeatWrapping;
  texture.colorSpace = THREE.SRGBColorSpace;
  return texture;
}
