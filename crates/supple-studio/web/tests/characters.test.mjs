// Characters of files in the browser: dropped on the page, drawn with their skin, their bones changed. And what `supple` writes as .glb, looked at by
// the validator of the Khronos Group.
//
// SUPPLE_ASSETS names the folder of models made by others; without it these tests are skipped, aloud.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import validator from "gltf-validator";
import { binary, browse, drawn, serve, steps, until, visit } from "./browser.mjs";

const folder = process.env.SUPPLE_ASSETS && join(process.env.SUPPLE_ASSETS, "gltf");
const skip = folder && existsSync(folder) ? false : "SUPPLE_ASSETS names no folder of models";
if (skip && process.env.SUPPLE_REQUIRE_ASSETS) throw new Error(skip);

const scratch = mkdtempSync(join(tmpdir(), "supple-characters-"));
let browser;
let studio;
let page;

before(async () => {
  if (skip) return;
  browser = await browse();
  studio = await serve("pendulum");
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

/** Drops a file on the page, as a hand does, with others that belong to it. */
async function drop(path, ...others) {
  await page.evaluate(
    (files) => {
      const transfer = new DataTransfer();
      for (const [name, bytes] of files) transfer.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name));
      document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    },
    [path, ...others].map((file) => [basename(file), readFileSync(file).toString("base64")]),
  );
  await until(page, (name) => window.supple.scene.name === name && window.supple.ready && window.supple.frame?.step > 20, basename(path));
}

/** The largest extent of the drawn skin, and the largest stretch of any edge against the file. */
const skin = async () => {
  await drawn(page);
  return page.evaluate(() => window.supple.skin());
};

test("a motion of another file becomes a clip of the character that is open", { skip }, async () => {
  await drop(join(folder, "RiggedFigure.glb"));
  const send = (path, target) =>
    page.evaluate(
      ([name, bytes, target]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name));
        const event = new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
        (target ? document.querySelector(target) : document).dispatchEvent(event);
      },
      [basename(path), readFileSync(path).toString("base64"), target],
    );
  await send(join(folder, "../bvh/cmu_02_01.bvh"), null);
  await until(page, () => window.supple.scene.clips.some((clip) => clip.name === "cmu_02_01") && window.supple.frame?.step > 60);
  const bodies = await page.evaluate(() => window.supple.scene.bodies.length);
  const tones = await page.evaluate(() => window.supple.status.tones);
  assert.equal(tones.clip.name, "cmu_02_01");
  assert.ok(tones.bodies.length === bodies && tones.bodies.every((tone) => tone === "follow"));
  // A character dropped on the clips gives its motion; of several the user says which.
  await send(join(folder, "mannequiny.glb"), "#clips");
  await page.getByRole("button", { name: "run_root.001", exact: true }).click();
  await until(page, () => window.supple.status.tones.clip?.name === "run_root.001");
  assert.equal(await page.evaluate(() => window.supple.scene.bodies.length), bodies, "the character is still the same");
  // The question which clip comes with status 400, which the browser writes down as a problem.
  assert.deepEqual(page.problems.splice(0).filter((text) => !/400/.test(text)), []);
});

test("a character shows twelve controls at most before anything is unfolded", { skip }, async () => {
  const fresh = await visit(browser, `${studio.address}?noaa&noshadow`, { folded: true });
  await until(fresh, () => window.supple.ready && document.querySelector("#clip").checkVisibility());
  const controls = await fresh.evaluate(() => {
    const all = document.querySelectorAll(".panel :is(button, input, select, a[href], label.button)");
    const own = [...all].filter((e) => !e.closest("#takes")); // of which there are as many as were made
    return own.filter((e) => e.checkVisibility() && e.type !== "file").map((e) => e.id || e.textContent.trim());
  });
  assert.ok(controls.length > 5 && controls.length <= 12, `${controls.length}: ${controls}`);
  await fresh.close();
});

test("mass, height and scale are fields; takes of the rig before stay in the list", { skip }, async () => {
  await drop(join(folder, "CesiumMan.glb"));
  const rig = () => page.evaluate(() => window.supple.scene.rig);
  const fill = async (id, value) => {
    await page.locator(`#${id}`).evaluate((field, value) => {
      field.value = value;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }, value);
  };
  const before = await rig();
  await fill("rig-height", "0.75");
  await until(page, () => Math.abs(window.supple.scene.rig.height - 0.75) < 1e-6);
  const half = await rig();
  assert.ok(Math.abs(half.scale / before.scale - 0.75 / before.height) < 1e-6);
  // It is drawn as large as it is; held in its pose, to a hundredth.
  await until(page, () => window.supple.ready && window.supple.frame !== null);
  await drawn(page);
  const { height } = await skin();
  assert.ok(Math.abs(height - 0.75) < 0.0075, `${height} m`);
  await fill("rig-mass", "20");
  await until(page, () => Math.abs(window.supple.scene.rig.mass - 20) < 1e-6);
  assert.ok(Math.abs((await rig()).height - 0.75) < 1e-6, "what was asked before is still asked");
  await fill("rig-height", "");
  await until(page, (height) => Math.abs(window.supple.scene.rig.height - height) < 1e-6, before.height);
  const marks = await page.locator("#takes .aside .faint").allTextContents();
  assert.ok(marks.length > 0 && marks.every((mark) => mark.startsWith("before change of mass or size")), marks.join());
  await page.locator("#takes .aside button").first().click();
  await until(page, (mass) => Math.abs(window.supple.scene.rig.mass - mass) < 1e-6, before.mass);
  assert.match((await page.locator("#takes .aside .faint").allTextContents()).join(), /after change of mass or size/);
});

test("a dropped character is drawn, stands and is not torn", { skip }, async () => {
  await drop(join(folder, "CesiumMan.glb"));
  const { height, stretch } = await skin();
  // 1.5 m high; held in its pose, no edge of the skin is longer than in the file by more than rounding.
  assert.ok(height > 1.4 && height < 1.6, `${height} m`);
  assert.ok(stretch < 1.02, `an edge is ${stretch} times as long`);
  assert.equal(await page.locator("#import").isVisible(), true);
  assert.match(await page.locator("#import-summary").textContent(), /19 bodies, 18 joints/);
  assert.ok((await page.locator("#import-notes li").count()) > 0);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "cesium-man.png") });
  assert.deepEqual(page.problems, []);
});

test("it is pulled by what is drawn, though its shapes are not", { skip }, async () => {
  assert.equal(await page.locator("[data-layer=shapes]").isChecked(), false);
  await drawn(page);
  const [x, y] = await page.evaluate(() => window.supple.screenOf(0));
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x - 40, y - 20, { steps: 4 });
  await until(page, () => window.supple.frame.drags.some((drag) => drag.puller === 1));
  await page.mouse.up();
  await until(page, () => !window.supple.frame.drags.some((drag) => drag.puller === 1));
});

test("a bone is changed: mass, sag, settling time and limits", { skip }, async () => {
  const body = await page.evaluate(() => window.supple.scene.bones.findIndex((b) => b.range !== null));
  const name = await page.evaluate((body) => window.supple.scene.bones[body].name, body);
  await page.locator("#body").selectOption(String(body));
  assert.equal(await page.locator("#bone-controls").isVisible(), true);
  const bone = () => page.evaluate((name) => window.supple.scene.bones.find((b) => b.name === name), name);
  const put = async (id, value, holds) => {
    const generation = await page.evaluate(() => window.supple.scene.generation);
    await page.locator(id).fill(String(value));
    await page.locator(id).press("Enter");
    await until(page, (before) => window.supple.scene.generation > before && window.supple.frame, generation);
    const now = await bone();
    assert.ok(holds(now), JSON.stringify(now));
  };
  await put("#bone-mass", 2.5, (b) => b.mass === 2.5);
  await put("#bone-sag", 12, (b) => Math.abs(b.sag - 12) < 1e-9);
  await put("#bone-settle", 0.8, (b) => b.settle === 0.8);
  await put("#bone-range-1", 90, (b) => Math.abs(b.range[1] - 90) < 1e-9 && b.joint_from === "scene");
  // The model is the changed one, what was chosen stays chosen, and the character goes on standing.
  const mass = await page.evaluate((body) => window.supple.scene.bodies[body].mass, body);
  assert.equal(mass, 2.5);
  assert.equal(await page.locator("#body").inputValue(), String(body));
  await until(page, () => window.supple.frame?.step > 30);
  const { height, stretch } = await skin();
  assert.ok(height > 1.35 && height < 1.65 && stretch < 1.5, `${height} m, ${stretch}`);
  // A value that cannot be is refused with words.
  await page.locator("#bone-sag").fill("1000");
  await page.locator("#bone-sag").press("Enter");
  await page.locator(".notice.error").first().waitFor();
  assert.match(await page.locator(".notice.error").first().textContent(), /sag/);
  // The changed rig can be saved, and undone.
  const text = await page.evaluate(async () => (await fetch("rig.toml")).text());
  assert.match(text, new RegExp(`\\[bones\\."${name.replace(/[^\w]/g, "\\$&")}"\\][^\\[]*\\nmass = 2\\.5\\nsag = 12\\.0\\nsettle = 0\\.8`));
  await page.locator("#undo").click();
  await until(page, (name) => window.supple.scene.bones.find((b) => b.name === name).range[1] !== 90, name);
  await page.locator("#undo").click();
  await until(page, (name) => window.supple.scene.bones.find((b) => b.name === name).settle !== 0.8, name);
  await page.locator("#redo").click();
  await until(page, (name) => window.supple.scene.bones.find((b) => b.name === name).settle === 0.8, name);
  assert.deepEqual(page.problems, []);
});

test("let go, it falls to the floor and stays whole", { skip }, async () => {
  await drop(join(folder, "CesiumMan.glb"));
  await page.locator("#view").focus();
  await page.keyboard.press("h");
  await until(page, () => window.supple.status.settings.hold === false);
  await until(page, () => window.supple.frame.step > 240);
  const { lowest, stretch } = await skin();
  assert.ok(lowest > -0.25, `${lowest} m below its floor`);
  assert.ok(stretch < 6, `an edge is ${stretch} times as long`);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "cesium-man-fallen.png") });
  assert.deepEqual(page.problems, []);
});

/** What the validator finds wrong in the bytes of a file. */
async function faults(bytes) {
  const report = await validator.validateBytes(bytes, { maxIssues: 100 });
  return report.issues.messages.filter((issue) => issue.severity === 0);
}

test("what was directed leaves as an animation of the same file", { skip }, async () => {
  const text = await page.evaluate(async () => {
    const bytes = new Uint8Array(await (await fetch("baked.glb")).arrayBuffer());
    let text = "";
    for (let k = 0; k < bytes.length; k += 4096) text += String.fromCharCode(...bytes.subarray(k, k + 4096));
    return btoa(text);
  });
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  assert.deepEqual(await faults(bytes), []);
  const json = (glb) => JSON.parse(Buffer.from(glb).toString("utf8", 20, 20 + Buffer.from(glb).readUInt32LE(12)));
  const [before, after] = [json(readFileSync(join(folder, "CesiumMan.glb"))), json(bytes)];
  assert.equal(after.animations.length, before.animations.length + 1);
  for (const key of ["materials", "meshes", "skins", "textures", "images"]) assert.deepEqual(after[key], before[key], key);
  assert.deepEqual(after.animations.slice(0, -1), before.animations);
  const steps = await page.evaluate(() => window.supple.frame.step);
  const { times } = after.animations.at(-1).extras.supple;
  assert.ok(times.length > 240 && times.length <= steps + 1, `${times.length} frames of ${steps} steps`);
});

test("every character is drawn as its file has it", { skip }, async () => {
  const names = ["mannequiny.glb", "generic-hand-left.glb", "RiggedFigure.glb", "platformer-robot.glb", "RecursiveSkeletons.glb", "RiggedSimple.glb"];
  for (const name of names) {
    await drop(join(folder, name));
    const { stretch } = await skin();
    // Held in its pose: to a hundredth of the length of any edge.
    assert.ok(stretch < 1.01, `${name}: an edge is ${stretch} times as long`);
    if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `${name}.png`) });
  }
  // The tests that follow need the machine and the pipe to the browser, through which all goes that a page hears.
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  assert.deepEqual(page.problems, []);
});

test("characters of other kinds are drawn: an FBX, an avatar, compressed meshes, a .gltf with its files", { skip }, async () => {
  const all = process.env.SUPPLE_ASSETS;
  const files = [
    ["fbx/maya_kenney_character_7700_binary.fbx"],
    ["fbx/maya_human_ik_7400_binary.fbx"],
    ["vrm/debug_robot.vrm"],
    ["characters/RiggedFigure-draco/RiggedFigure.gltf", "characters/RiggedFigure-draco/RiggedFigure0.bin"],
    ["characters/Pug/Pug.gltf", "characters/Pug/Pug.bin"],
  ];
  for (const [name, ...others] of files) {
    await drop(join(all, name), ...others.map((other) => join(all, other)));
    const { height, stretch } = await skin();
    // Files in other units than metres are drawn as large as they are: their bodies carry them.
    const { rig } = await page.evaluate(() => window.supple.scene);
    assert.ok(Math.abs(height / rig.height - 1) < 0.01 && stretch < 1.01, `${name}: ${height} m high, not ${rig.height}, an edge is ${stretch} times as long`);
    // Nine tenths of the picture, also once it runs and the page looks after it.
    await until(page, () => window.supple.frame?.step > 20);
    await drawn(page);
    const { fills } = await page.evaluate(() => window.supple.portrait());
    assert.ok(fills > 0.85, `${name} fills ${fills} of the picture`);
    if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `${basename(name)}.png`) });
  }
  assert.deepEqual(page.problems, []);
});

test("the Khronos validator finds no error in what is written", { skip }, async () => {
  const calls = [
    ["simulate", join(folder, "CesiumMan.glb"), "--seconds", "5"],
    ["simulate", join(folder, "mannequiny.glb"), "--track", "run", "--seconds", "1"],
    ["simulate", join(folder, "SimpleSkin.gltf"), "--seconds", "1"],
    ["simulate", "hand", "--seconds", "1"],
    ["rig", join(folder, "CesiumMan.glb")],
    ["rig", join(folder, "generic-hand-left.glb")],
    ["rig", join(folder, "..", "fbx", "maya_kenney_character_7700_binary.fbx")],
  ];
  // every character of the assets, in folders of any depth
  const all = ["gltf", "characters", "vrm", "fbx"].flatMap((kind) =>
    readdirSync(join(folder, "..", kind), { recursive: true }).map((name) => join(folder, "..", kind, name)),
  );
  const characters = all.filter((name) => /\.(glb|gltf|vrm|fbx)$/.test(name) && !/SimpleMorph/.test(name)); // a cube without bones is refused
  assert.ok(characters.length > 15, `${characters.length}`);
  for (const name of characters) calls.push(["simulate", name, "--seconds", "0.5"]);
  // soft skin becomes morph targets of the file's own meshes
  copyFileSync(join(folder, "CesiumMan.glb"), join(scratch, "man.glb"));
  writeFileSync(join(scratch, "man.toml"), '[character]\nfile = "man.glb"\n[skin."*"]\nstiffness = 30000\n');
  calls.push(["simulate", join(scratch, "man.toml"), "--seconds", "1"]);
  for (const [k, call] of calls.entries()) {
    const path = join(scratch, `${k}.glb`);
    await promisify(execFile)(binary, [...call, "-o", path]);
    assert.deepEqual(await faults(new Uint8Array(readFileSync(path))), [], call.join(" "));
  }
});

test("a character in soft skin is poked, and its mesh is drawn once", { skip }, async () => {
  copyFileSync(join(folder, "RiggedFigure.glb"), join(scratch, "man.glb"));
  const scene = join(scratch, "soft.toml");
  writeFileSync(scene, '[character]\nfile = "man.glb"\n\n[skin."*"]\nstiffness = 60000\n');
  const soft = await serve(scene);
  try {
    const page = await visit(browser, `${soft.address}?noaa&noshadow`);
    await until(page, () => window.supple.soft && window.supple.flesh.vertices > 100 && !window.supple.meshesDrawn);
    await page.locator("#view").focus();
    await page.keyboard.press("Space");
    await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
    await page.keyboard.press("o");
    // Vertices touch, and this figure has few: the ball is larger than its triangles.
    await page.locator("#ball-radius").fill("-0.5");
    await drawn(page);
    const [x, y] = await page.evaluate(() => window.supple.screenOf(0));
    await page.mouse.move(x, y);
    await until(page, () => window.supple.tool.preview);
    const before = await page.evaluate(() => window.supple.soft.displacement);
    await page.mouse.down();
    await until(page, () => window.supple.frame.skin.balls.length === 1);
    await page.locator("#view").focus();
    await steps(page, 6);
    await until(page, (before) => window.supple.soft.displacement > before + 1e-3, before);
    if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "soft-man.png") });
    await page.mouse.up();
    assert.deepEqual(page.problems, []);
    await page.close();
  } finally {
    soft.stop();
  }
});
