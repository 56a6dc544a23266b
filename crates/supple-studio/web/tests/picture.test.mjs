// What the page draws of a file: the artist's materials as three's own viewer shows them, and shadows without stripes.
//
// SUPPLE_ASSETS names the folder of models made by others; without it the tests that need it are skipped, aloud.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browse, drawn, serve, steps, until, visit } from "./browser.mjs";

const assets = process.env.SUPPLE_ASSETS;
const skip = assets && existsSync(assets) ? false : "SUPPLE_ASSETS names no folder of models";
if (skip && process.env.SUPPLE_REQUIRE_ASSETS) throw new Error(skip);

const scratch = mkdtempSync(join(tmpdir(), "supple-picture-"));
let browser;
before(async () => {
  browser = await browse();
});
after(async () => {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
});

/** Pauses at the first step. */
async function atStart(page) {
  await until(page, () => window.supple.ready && window.supple.frame?.step > 0);
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  await page.keyboard.press("Home");
  await until(page, () => window.supple.frame.step === 0);
  await drawn(page);
}

/** three's loader and its light of a room, and nothing of ours: how the file looks to others. */
const VIEWER = `<!doctype html><canvas id="view"></canvas>
<script type="importmap">{ "imports": { "three": "/three/build/three.module.js", "three/addons/": "/three/examples/jsm/" } }</script>
<script type="module">
  import * as THREE from "three";
  import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";
  import { RoomEnvironment } from "three/addons/environments/RoomEnvironment.js";
  const canvas = document.getElementById("view");
  const renderer = new THREE.WebGLRenderer({ canvas, preserveDrawingBuffer: true });
  renderer.toneMapping = THREE.ACESFilmicToneMapping;
  const environment = new THREE.PMREMGenerator(renderer).fromScene(new RoomEnvironment(), 0.04).texture;
  window.look = async (file, { position, target, fov, aspect, near, far }, turn) => {
    renderer.setSize(Math.round(360 * aspect), 360, false);
    const scene = new THREE.Scene();
    scene.environment = environment;
    scene.environmentRotation.y = turn;
    scene.background = new THREE.Color(0xff00ff);
    scene.add((await new GLTFLoader().loadAsync(file)).scene);
    const camera = new THREE.PerspectiveCamera(fov, aspect, near, far);
    camera.position.set(...position);
    camera.lookAt(...target);
    renderer.render(scene, camera);
    const gl = renderer.getContext();
    const data = new Uint8Array(4 * gl.drawingBufferWidth * gl.drawingBufferHeight);
    gl.readPixels(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight, gl.RGBA, gl.UNSIGNED_BYTE, data);
    const sum = [0, 0, 0];
    let pixels = 0;
    for (let k = 0; k < data.length; k += 4) {
      if (data[k] === 255 && data[k + 1] === 0 && data[k + 2] === 255) continue;
      pixels++;
      for (let c = 0; c < 3; c++) sum[c] += data[k + c];
    }
    return { mean: sum.map((s) => s / pixels) };
  };
  // Vertices of each mesh in a clip at a time, as many as the studio tells.
  window.pose = async (file, clip, time, most) => {
    const { scene, animations } = await new GLTFLoader().loadAsync(file);
    const animation = animations.find(({ name }) => name === clip) ?? animations[0];
    const mixer = new THREE.AnimationMixer(scene);
    mixer.clipAction(animation).setLoop(THREE.LoopOnce).play();
    mixer.setTime(Math.min(time, animation.duration - 1e-6));
    scene.updateMatrixWorld(true);
    const all = [];
    scene.traverse((mesh) => {
      if (!mesh.isMesh) return;
      const count = mesh.geometry.getAttribute("position").count;
      const apart = Math.ceil(count / most);
      const points = [];
      for (let v = 0; v < count; v += apart) points.push(...mesh.getVertexPosition(v, new THREE.Vector3()).applyMatrix4(mesh.matrixWorld).toArray());
      all.push(points);
    });
    return all;
  };
</script>`;

/** Serves the viewer, three and the folder of models. */
async function viewer() {
  const three = fileURLToPath(new URL("../node_modules/three/", import.meta.url));
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const file = path.startsWith("/three/") ? join(three, path.slice(7)) : join(assets, path);
    if (path !== "/" && !existsSync(file)) return response.writeHead(404).end();
    const kind = path === "/" ? "text/html" : path.endsWith(".js") ? "text/javascript" : "application/octet-stream";
    response.writeHead(200, { "content-type": kind }).end(path === "/" ? VIEWER : readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() };
}

test("a character has the colours that three's own viewer gives it", { skip }, async () => {
  // COLOURS=all: every character that three's loader reads without decoders.
  const every = process.env.COLOURS === "all";
  const few = ["gltf/CesiumMan.glb", "characters/rogue-hooded.glb"];
  const files = every ? readdirSync(assets, { recursive: true }).filter((path) => /\.(glb|gltf|vrm)$/.test(path)).sort() : few;
  const other = await viewer();
  const reference = await browser.newPage();
  reference.setDefaultTimeout(90_000); // its room takes long without a graphics card
  await reference.goto(other.address);
  await reference.waitForFunction(() => window.look);
  const wrong = [];
  try {
    for (const file of files) {
      const studio = await serve(join(assets, file)).catch(() => null);
      if (!studio) {
        assert.ok(every, `${file} is opened`);
        console.log(`${file}: no character`);
        continue;
      }
      const page = await visit(browser, `${studio.address}?noaa&room`, { viewport: { width: 800, height: 500 } });
      try {
        await atStart(page);
        const ours = await page.evaluate(() => ({ ...window.supple.portrait(), camera: window.supple.camera, room: window.supple.room }));
        // Others leave their room as it is, ours turns with the character: what looks away from z is seen before their other wall, and compared in a room that is turned.
        let [off, told] = [Infinity, ""];
        for (const turn of every ? [0, ours.room] : [0]) {
          const theirs = await reference.evaluate((words) => window.look(...words).catch(() => null), [`/${file}`, ours.camera, turn]);
          if (!theirs) break;
          const far = Math.max(...ours.mean.map((mean, c) => Math.abs(mean / theirs.mean[c] - 1)));
          off = Math.min(off, far);
          told = `${file}: ${(100 * far).toFixed(1)} % off, drawn as ${ours.mean.map(Math.round)}, by three's viewer as ${theirs.mean.map(Math.round)}, fills ${ours.fills.toFixed(2)}`;
          if (every) console.log(`${told}${turn === 0 ? "" : ", its room turned"}`);
        }
        if (!told) {
          assert.ok(every, `${file} is read by three`);
          console.log(`${file}: three's loader cannot read it alone`);
          continue;
        }
        if (!(off < 0.1 && ours.fills > 0.7) || page.problems.length > 0) wrong.push([told, ...page.problems]);
      } finally {
        await page.close();
        studio.stop();
      }
    }
  } finally {
    await reference.close();
    other.stop();
  }
  assert.deepEqual(wrong, []);
});

test("a clip is drawn as three's own mixer has it", { skip }, async () => {
  // COLOURS=all: every character with clips.
  const every = process.env.COLOURS === "all";
  const few = ["gltf/CesiumMan.glb"];
  const files = every ? readdirSync(assets, { recursive: true }).filter((path) => /\.(glb|gltf|vrm)$/.test(path)).sort() : few;
  const other = await viewer();
  const reference = await browser.newPage();
  reference.setDefaultTimeout(90_000); // its room takes long without a graphics card
  await reference.goto(other.address);
  await reference.waitForFunction(() => window.pose);
  const [step, most] = [20, 400];
  const wrong = [];
  try {
    for (const file of files) {
      const studio = await serve(join(assets, file)).catch(() => null);
      if (!studio) {
        assert.ok(every, `${file} is opened`);
        continue;
      }
      const page = await visit(browser, `${studio.address}?noaa&noshadow`, { viewport: { width: 500, height: 400 } });
      try {
        await until(page, () => window.supple.ready);
        const first = await page.evaluate(() => window.supple.scene.clips[0]?.name);
        if (first === undefined) continue;
        await page.locator("#clip").selectOption(first);
        await until(page, (first) => window.supple.scene.name.endsWith(`#${first}`) && window.supple.ready, first);
        await atStart(page);
        await steps(page, step);
        const { clip, time, ours } = await page.evaluate((most) => {
          const { tones, settings } = window.supple.status;
          return { clip: tones.clip?.name, time: window.supple.frame.step * settings.dt, ours: window.supple.points(most) };
        }, most);
        const theirs = await reference.evaluate((words) => window.pose(...words).catch(() => null), [`/${file}`, clip, time, most]);
        if (!theirs) continue; // it needs decoders, or has no clip
        const low = Math.min(...ours.flatMap((mesh) => mesh.filter((_, k) => k % 3 === 1)));
        const height = Math.max(...ours.flatMap((mesh) => mesh.filter((_, k) => k % 3 === 1))) - low;
        let off = 0;
        // A mesh without normals has other vertices in the studio.
        ours.forEach((mesh, m) => {
          if (mesh.length !== theirs[m]?.length) return;
          for (let k = 0; k < mesh.length; k += 3) off = Math.max(off, Math.hypot(...[0, 1, 2].map((c) => mesh[k + c] - theirs[m][k + c])));
        });
        const told = `${file}#${clip} at ${time.toFixed(2)} s: a vertex is ${((100 * off) / height).toFixed(1)} % of the height from where three has it`;
        if (every) console.log(told);
        if (!(off < 0.05 * height)) wrong.push(told);
      } finally {
        await page.close();
        studio.stop();
      }
    }
  } finally {
    await reference.close();
    other.stop();
  }
  assert.deepEqual(wrong, []);
});

/** Plates side by side, each turned by its angle about an axis and carried by a bone: a .gltf with its data inside. */
function plates(turns) {
  const [wide, thick, deep] = [0.15, 0.05, 0.4];
  const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]];
  const sides = [0, 1, 2, 3].flatMap((k) => [[k, (k + 1) % 4, 4 + k], [(k + 1) % 4, 4 + ((k + 1) % 4), 4 + k]]);
  const faces = [[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], ...sides].flat();
  const [positions, joints, weights, indices] = [[], [], [], []];
  turns.forEach((_, k) => {
    for (const y of [thick, -thick]) {
      for (const [x, z] of corners) {
        positions.push(wide * x, y, deep * z);
        joints.push(k, 0, 0, 0);
        weights.push(1, 0, 0, 0);
      }
    }
    indices.push(...faces.map((v) => v + 8 * k));
  });
  const parts = [Float32Array.from(positions), Uint16Array.from(joints), Float32Array.from(weights), Uint16Array.from(indices)].map((a) => Buffer.from(a.buffer));
  const views = parts.map((part, k) => ({ buffer: 0, byteOffset: parts.slice(0, k).reduce((sum, p) => sum + p.length, 0), byteLength: part.length }));
  const count = 8 * turns.length;
  const bones = turns.map(([axis, angle], k) => ({
    name: `plate ${k}`,
    translation: [0.5 * (k - (turns.length - 1) / 2), 1, 0],
    rotation: [..."xyz"].map((name) => (name === axis ? Math.sin(angle / 2) : 0)).concat(Math.cos(angle / 2)),
  }));
  const own = bones.map((_, k) => k);
  return JSON.stringify({
    asset: { version: "2.0" },
    scene: 0,
    scenes: [{ nodes: [...own, bones.length] }],
    nodes: [...bones, { mesh: 0, skin: 0 }],
    skins: [{ joints: own }],
    meshes: [{ primitives: [{ attributes: { POSITION: 0, JOINTS_0: 1, WEIGHTS_0: 2 }, indices: 3, material: 0 }] }],
    materials: [{ doubleSided: true, pbrMetallicRoughness: { baseColorFactor: [0.6, 0.6, 0.6, 1], metallicFactor: 0, roughnessFactor: 1 } }],
    accessors: [
      { bufferView: 0, componentType: 5126, count, type: "VEC3", min: [-wide, -thick, -deep], max: [wide, thick, deep] },
      { bufferView: 1, componentType: 5123, count, type: "VEC4" },
      { bufferView: 2, componentType: 5126, count, type: "VEC4" },
      { bufferView: 3, componentType: 5123, count: indices.length, type: "SCALAR" },
    ],
    bufferViews: views,
    buffers: [{ byteLength: Buffer.concat(parts).length, uri: `data:application/octet-stream;base64,${Buffer.concat(parts).toString("base64")}` }],
  });
}

test("no plate, however it is turned to the light, is striped by its own shadow", async () => {
  // From full in the light to grazed by it.
  const turns = [["x", 0.6], ["x", 1.1], ["z", -0.7], ["z", -1.1], ["z", -1.3]];
  const path = join(scratch, "plates.gltf");
  writeFileSync(path, plates(turns));
  const studio = await serve(path);
  const page = await visit(browser, `${studio.address}?noaa&noroom`);
  try {
    await atStart(page);
    const seen = await page.evaluate(
      (names) => names.map((name) => window.supple.patch(window.supple.screenOf(window.supple.bodyOf(name)), 6)),
      turns.map((_, k) => `plate ${k}`),
    );
    if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "plates.png") });
    // One step of the screen's 256 is what rounding and the slow change of light across a plate make.
    for (const { mean, deviation } of seen) assert.ok(mean > 20 && deviation < 1, JSON.stringify(seen));
    assert.deepEqual(page.problems, []);
  } finally {
    await page.close();
    studio.stop();
  }
});

test("a picture of another size is never cleared before it is drawn again", async () => {
  const studio = await serve("pendulum");
  const page = await browser.newPage({ viewport: { width: 900, height: 600 } });
  // A canvas that takes another size is empty from then on.
  await page.addInitScript(() => {
    window.blanks = window.sizes = 0;
    let cleared = false;
    const { set, get } = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
    Object.defineProperty(HTMLCanvasElement.prototype, "width", {
      get,
      set(width) {
        set.call(this, width);
        if (this.id !== "view") return;
        window.sizes++;
        cleared = true;
        queueMicrotask(() => (window.blanks += Number(cleared)));
      },
    });
    for (const name of ["drawElements", "drawArrays"]) {
      const own = WebGL2RenderingContext.prototype[name];
      WebGL2RenderingContext.prototype[name] = function (...args) {
        cleared = false;
        return own.apply(this, args);
      };
    }
  });
  try {
    await visit(page, `${studio.address}?noaa&noshadow`);
    await until(page, () => window.supple.ready && window.supple.frame?.step > 5);
    const before = await page.evaluate(() => window.sizes);
    await page.setViewportSize({ width: 700, height: 500 });
    await until(page, (before) => window.sizes > before, before);
    await drawn(page);
    const { width, client } = await page.evaluate(() => {
      const { width, clientWidth } = document.getElementById("view");
      return { width, client: clientWidth };
    });
    assert.ok(width >= 0.74 * client, `${width} pixels for ${client}`);
    assert.equal(await page.evaluate(() => window.blanks), 0);
  } finally {
    await page.close();
    studio.stop();
  }
});

test("nothing is drawn twice before the character is there", { skip }, async () => {
  const studio = await serve(join(assets, "characters/rogue-hooded.glb"));
  const page = await browser.newPage({ viewport: { width: 900, height: 600 } });
  await page.addInitScript(() => {
    let own;
    // The page tells when it is ready: what was drawn until then.
    Object.defineProperty(window, "supple", {
      get: () => own,
      set(supple) {
        own = supple;
        const look = () => {
          if (own.ready) return;
          window.drawnEarly = own.frames;
          requestAnimationFrame(look);
        };
        look();
      },
    });
  });
  try {
    await visit(page, `${studio.address}?noaa`);
    await until(page, () => window.supple.firstPicture !== null);
    assert.ok((await page.evaluate(() => window.drawnEarly)) <= 1);
    assert.deepEqual(page.problems, []);
  } finally {
    await page.close();
    studio.stop();
  }
});
