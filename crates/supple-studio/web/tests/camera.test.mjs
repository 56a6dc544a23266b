// The camera: from every side, on what is chosen, along with what moves, and never below the floor. And the light on what is chosen.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse, drawn, placeOf, serve, steps, until, visit } from "./browser.mjs";

const man = process.env.SUPPLE_ASSETS && join(process.env.SUPPLE_ASSETS, "gltf", "CesiumMan.glb");
const skip = man && existsSync(man) ? false : "SUPPLE_ASSETS names no folder of models";
if (skip && process.env.SUPPLE_REQUIRE_ASSETS) throw new Error(skip);

let browser;
let studio;
let page;
before(async () => {
  if (skip) return;
  browser = await browse();
  studio = await serve(man);
  // Without gliding: it is there at once.
  page = await visit(browser, `${studio.address}?noaa&noshadow`, { reducedMotion: "reduce" });
  await until(page, () => window.supple.ready && !window.supple.frame.playing && !window.supple.status.playing);
  await drawn(page);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

const camera = async () => {
  const { position, target } = await page.evaluate(() => window.supple.camera);
  const way = position.map((x, k) => x - target[k]);
  const distance = Math.hypot(...way);
  return { position, target, distance, way: way.map((x) => x / distance) };
};

test("it is seen from its front, from the side and from above", { skip }, async () => {
  const look = async (view) => {
    await page.locator(`[data-view=${view}]`).click();
    await drawn(page);
    return (await camera()).way;
  };
  // This man looks along +Z; his left is +X.
  const near = (a, b) => a.every((x, k) => Math.abs(x - b[k]) < 0.15);
  assert.ok(near(await look("front"), [0, 0.1, 1]));
  assert.ok(near(await look("side"), [1, 0.06, 0]));
  assert.ok(near(await look("top"), [0, 1, 0]));
  const [x, y, z] = await look("three_quarter");
  assert.ok(x > 0.3 && y > 0.2 && z > 0.6, `${[x, y, z]}`);
});

test("what is clicked is chosen and lights up, and F frames it where it is now", { skip }, async () => {
  assert.equal(await page.evaluate(() => window.supple.lit), 0);
  const [x, y] = await placeOf(page, "Skeleton_arm_joint_L__2_");
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.up();
  await page.mouse.move(5, 300);
  assert.equal(await page.locator("#body option:checked").textContent(), "Skeleton_arm_joint_L__2_");
  await until(page, () => window.supple.lit > 10);
  const whole = await camera();
  await page.locator("#view").focus();
  await page.keyboard.press("f");
  const { target, distance } = await camera();
  const limb = await page.evaluate(() => [...window.supple.frame.poses].slice(7 * window.supple.bodyOf("Skeleton_arm_joint_L__2_")).slice(0, 3));
  assert.ok(Math.hypot(...limb.map((p, k) => p - target[k])) < 0.15, `${limb} is framed at ${target}`);
  assert.ok(distance < 0.7 * whole.distance, `from ${whole.distance} to ${distance} m`);
});

test("it follows what falls, and never goes below the floor", { skip }, async () => {
  await page.locator("#follow").click();
  const limb = () => page.evaluate(() => [...window.supple.frame.poses].slice(7 * window.supple.bodyOf("Skeleton_arm_joint_L__2_")).slice(0, 3));
  const [before, from] = [await camera(), await limb()];
  await page.locator("#view").focus();
  await page.keyboard.press("h");
  await until(page, () => window.supple.status.settings.hold === false);
  await steps(page, 60);
  const [after, to] = [await camera(), await limb()];
  const went = to.map((p, k) => p - from[k]);
  assert.ok(Math.hypot(...went) > 0.03, `it went ${went}`);
  const off = went.map((w, k) => after.target[k] - before.target[k] - w);
  assert.ok(Math.hypot(...off) < 1e-3, `what it looks at is ${off} m behind`);
  for (let k = 0; k < 30; k++) await page.keyboard.press("ArrowUp");
  for (let k = 0; k < 30; k++) await page.keyboard.press("ArrowDown");
  await drawn(page);
  for (let k = 0; k < 30; k++) {
    await page.keyboard.press("ArrowUp");
    const { position } = await camera();
    assert.ok(position[1] > 0, `${position[1]} m`);
  }
  assert.deepEqual(page.problems, []);
});

/** A scene whose hand rises out of the picture it begins in, by so many steps; first `does` is done. */
async function risen(does) {
  const other = await serve("grasp");
  try {
    const tab = await visit(browser, `${other.address}?noaa&noshadow`, { reducedMotion: "reduce" });
    await until(tab, () => window.supple.ready && !window.supple.frame.playing && !window.supple.status.playing);
    await tab.locator("#view").focus();
    await does(tab);
    await drawn(tab);
    const seen = () => tab.evaluate(() => window.supple.inPicture);
    assert.equal(await seen(), true);
    // The page looks after it at its own pace, ten times a second.
    for (let k = 0; k < 12; k++) {
      await steps(tab, 10);
      await tab.waitForTimeout(120);
      await drawn(tab);
    }
    assert.deepEqual(tab.problems, []);
    return await seen();
  } finally {
    other.stop();
  }
}

test("what leaves the picture by itself is framed again, unless a hand has turned the camera", async () => {
  browser ??= await browse();
  assert.equal(await risen(async () => {}), true);
  assert.equal(await risen((tab) => tab.keyboard.press("ArrowLeft")), false);
});

test("the camera goes along with what is let go while it runs", { skip }, async () => {
  const other = await serve(man);
  try {
    const tab = await visit(browser, `${other.address}?noaa&noshadow`, { reducedMotion: "reduce" });
    await until(tab, () => window.supple.ready && !window.supple.status.playing);
    await tab.locator("#view").focus();
    await tab.keyboard.press(" ");
    await until(tab, () => window.supple.frame.playing && window.supple.frame.step > 5);
    const follows = () => tab.locator("#follow").getAttribute("aria-pressed");
    assert.equal(await follows(), "false");
    await tab.keyboard.press("l");
    await until(tab, () => document.getElementById("follow").getAttribute("aria-pressed") === "true");
    const step = await tab.evaluate(() => window.supple.frame.step);
    await until(tab, (step) => window.supple.frame.step > step + 120, step);
    await drawn(tab);
    assert.equal(await tab.evaluate(() => window.supple.inPicture), true);
    assert.deepEqual(tab.problems, []);
  } finally {
    other.stop();
  }
});

test("what falls with a chosen limb stays in the picture as a whole, and the camera begins from where it was let go", { skip }, async () => {
  const other = await serve(man);
  try {
    const tab = await visit(browser, `${other.address}?noaa&noshadow`, { reducedMotion: "reduce" });
    await until(tab, () => window.supple.ready && !window.supple.status.playing);
    const head = await tab.evaluate(() => window.supple.scene.bodies.findIndex(({ name }) => /neck/.test(name)));
    await tab.locator("#body").selectOption(String(head));
    await tab.locator("#view").focus();
    await tab.keyboard.press(" ");
    await until(tab, () => window.supple.frame.playing && window.supple.frame.step > 5);
    await tab.keyboard.press("l");
    await until(tab, () => document.getElementById("follow").getAttribute("aria-pressed") === "true");
    const step = await tab.evaluate(() => window.supple.frame.step);
    await until(tab, (step) => window.supple.frame.step > step + 180, step);
    await tab.waitForTimeout(300); // the page looks after it at its own pace
    await drawn(tab);
    assert.equal(await tab.evaluate(() => window.supple.inPicture), true);
    assert.deepEqual(tab.problems, []);
  } finally {
    other.stop();
  }
});
