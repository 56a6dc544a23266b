// Handles on the chosen bone: dragged, they change its limits and its collision shape, and those of the bone across from it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assets, drawn, open, skip, until } from "./browser.mjs";

let opened, page;
before(async () => {
  if (skip) return;
  opened = await open(join(assets, "gltf/mannequiny.glb"), { paused: true });
  page = opened.page;
});
after(() => opened?.close());

const shot = (name) => opened.shot(name);
const bone = (name) => page.evaluate((name) => window.supple.scene.bones.find((bone) => bone.name === name), name);
const choose = async (name) => {
  await page.locator("#body").selectOption(String(await page.evaluate((name) => window.supple.bodyOf(name), name)));
  await page.locator("#view").focus();
  await drawn(page);
};
const layer = (name, on) => page.locator(`[data-layer=${name}]`).setChecked(on);
const handles = async () => {
  await drawn(page);
  return page.evaluate(() => window.supple.gizmos);
};
/** Drags a handle by pixels, and waits until the bone is made anew. */
async function drag(name, right, down) {
  const { at } = (await handles()).find((handle) => handle.name === name);
  const generation = await page.evaluate(() => window.supple.scene.generation);
  await page.mouse.move(...at);
  await page.mouse.down();
  await page.mouse.move(at[0] + right / 2, at[1] + down / 2);
  await page.mouse.move(at[0] + right, at[1] + down);
  await shot(`gizmo-${name.replace(" ", "-")}.png`);
  await page.mouse.up();
  await until(page, (generation) => window.supple.scene.generation > generation && window.supple.ready && window.supple.frame !== null, generation);
}

test("the range of a hinge is dragged, and its twin's with it", { skip }, async () => {
  await layer("limits", true);
  await layer("shapes", false);
  await choose("lowerarm.l");
  assert.deepEqual((await handles()).map(({ name }) => name), ["range 0", "range 1"]);
  const [before, across] = [await bone("lowerarm.l"), await bone("lowerarm.r")];
  await drag("range 1", 40, 40);
  const [after, there] = [await bone("lowerarm.l"), await bone("lowerarm.r")];
  assert.ok(Math.abs(after.range[1] - before.range[1]) > 3, `${before.range} to ${after.range}`);
  assert.ok(Math.abs(after.range[0] - before.range[0]) < 1e-9);
  // The same on the other side, whichever way its axis points.
  const same = Math.abs(there.range[0] - after.range[0]) + Math.abs(there.range[1] - after.range[1]);
  const turned = Math.abs(there.range[0] + after.range[1]) + Math.abs(there.range[1] + after.range[0]);
  assert.ok(Math.min(same, turned) < 1e-6, `${across.range} to ${there.range}, and ${after.range}`);
  await page.locator("#undo").click();
  await until(page, (range) => window.supple.scene.bones.find(({ name }) => name === "lowerarm.r").range[1] === range, across.range[1]);
  assert.deepEqual((await bone("lowerarm.l")).range, before.range);
});

test("the swing of a ball is dragged, and its twin's with it", { skip }, async () => {
  await choose("thigh.r");
  const names = (await handles()).map(({ name }) => name);
  assert.deepEqual(names.slice(0, 2), ["swing 0", "swing 1"]);
  const before = await bone("thigh.r");
  await drag("swing 1", 25, -25);
  const [after, there] = [await bone("thigh.r"), await bone("thigh.l")];
  assert.ok(Math.abs(after.swing[1] - before.swing[1]) > 2, `${before.swing} to ${after.swing}`);
  assert.deepEqual(there.swing.map((x) => x.toFixed(6)), after.swing.map((x) => x.toFixed(6)));
});

test("a collision shape is made wider, and its twin's with it", { skip }, async () => {
  await layer("limits", false);
  await layer("shapes", true);
  await choose("calf.l");
  assert.deepEqual((await handles()).map(({ name }) => name), ["width", "length"]);
  const widths = (name) =>
    page.evaluate((name) => {
      const [shape] = window.supple.scene.bodies[window.supple.bodyOf(name)].shapes;
      return shape.radius ?? Math.min(...(shape.size ?? [NaN]));
    }, name);
  const before = [await widths("calf.l"), await widths("calf.r")];
  const { at } = (await handles()).find(({ name }) => name === "width");
  const [x, y] = await page.evaluate(() => window.supple.screenOf(window.supple.bodyOf("calf.l")));
  // Half as far again from the middle of the bone.
  await drag("width", 0.5 * (at[0] - x), 0.5 * (at[1] - y));
  const after = [await widths("calf.l"), await widths("calf.r")];
  assert.ok(after[0] > 1.15 * before[0] && after[0] < 2 * before[0], `${before} to ${after}`);
  assert.ok(Math.abs(after[1] / before[1] - after[0] / before[0]) < 1e-6, `${before} to ${after}`);
  const rig = await page.evaluate(async () => (await fetch("rig.toml")).text());
  assert.equal(rig.match(/^width = /gm)?.length, 2);
  assert.deepEqual(page.problems, []);
});
