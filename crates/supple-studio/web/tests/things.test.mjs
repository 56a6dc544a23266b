// Things from the shelf: put beside a character, placed by arrows, held by a hand, flicked with the mouse, thrown where one clicks.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assets, drawn, open, placeOf, skip, steps, until } from "./browser.mjs";

let opened, page;
before(async () => {
  if (skip) return;
  opened = await open(join(assets, "gltf/platformer-robot.glb"), { paused: true });
  page = opened.page;
});
after(() => opened?.close());

const names = () => page.evaluate(() => window.supple.scene.things.map(({ name }) => name));
const has = (wanted) => until(page, (wanted) => JSON.stringify(window.supple.scene.things.map(({ name }) => name)) === wanted && window.supple.frame !== null, JSON.stringify(wanted));
const place = async (name) => {
  // After a change of things the first frame of the new scene is still on its way.
  await until(page, () => window.supple.frame !== null);
  return page.evaluate((name) => {
    const body = window.supple.bodyOf(name);
    return [...window.supple.frame.poses.slice(7 * body, 7 * body + 3)];
  }, name);
};
const far = (a, b) => Math.hypot(...a.map((x, k) => x - b[k]));
const shot = (name) => opened.shot(name);

test("a thing from the shelf stands beside the character, which stays as it is", { skip }, async () => {
  const before = await page.evaluate(() => [...window.supple.frame.poses]);
  await page.locator("[data-thing=ball]").click();
  await has(["ball 1"]);
  const after = await page.evaluate(() => [...window.supple.frame.poses]);
  assert.deepEqual(after.slice(0, before.length), before);
  assert.equal(await page.evaluate(() => window.supple.meshesDrawn), true);
  await page.locator("[data-thing=stairs]").click();
  await has(["ball 1", "stairs 1"]);
  // All of it is in the picture, beside the character.
  await until(page, () => {
    const { position, size } = window.supple.scene.things[1];
    const { left, right, top, bottom } = document.getElementById("view").getBoundingClientRect();
    const corners = [0, 1, 2, 3, 4, 5, 6, 7].map((k) => [(k & 1 ? 0.5 : -0.5) * size[0], (k & 2 ? 1 : 0) * size[1], (k & 4 ? 0.5 : -0.5) * size[2]]);
    const places = corners.map((corner) => window.supple.screenAt(corner.map((x, k) => x + position[k])));
    return window.supple.inPicture && places.every(([x, y]) => x >= left && x <= right && y >= top && y <= bottom);
  });
  await shot("things-stairs.png");
  await page.locator("#undo").click();
  await has(["ball 1"]);
  await shot("things-shelf.png");
});

test("mass and friction are those that are asked for", { skip }, async () => {
  await page.locator("#thing-mass").fill("3.5");
  await page.locator("#thing-mass").press("Enter");
  await until(page, () => window.supple.scene.things[0].mass === 3.5 && window.supple.scene.bodies.at(-1).mass === 3.5);
  await page.locator("#thing-friction").fill("0.2");
  await page.locator("#thing-friction").press("Enter");
  await until(page, () => window.supple.scene.things[0].friction === 0.2);
});

test("arrows in the picture put it elsewhere", { skip }, async () => {
  const before = await place("ball 1");
  await page.locator("#place-thing").click();
  await drawn(page);
  const [x, y] = await placeOf(page, "ball 1");
  // The arrow that points up begins at the middle of the thing.
  await page.mouse.move(x, y - 30);
  await drawn(page);
  await page.mouse.down();
  await page.mouse.move(x, y - 60, { steps: 4 });
  await page.mouse.move(x, y - 90, { steps: 4 });
  await page.mouse.up();
  await until(page, (y) => window.supple.scene.things[0].position[1] > y + 0.05, before[1]);
  const after = await place("ball 1");
  assert.ok(Math.abs(after[0] - before[0]) < 1e-3 && after[1] > before[1] + 0.05, `${before} to ${after}`);
  await page.keyboard.press("Escape");
  await drawn(page);
  assert.equal(await page.locator("#place-thing").getAttribute("aria-pressed"), "false");
});

test("a bone holds it, exactly, and lets it go", { skip }, async () => {
  const bone = await page.evaluate(() => window.supple.scene.bodies.findIndex(({ name }) => /hand|arm/i.test(name)));
  await page.locator("#body").selectOption(String(bone));
  await page.locator("#hold-thing").click();
  await until(page, () => window.supple.scene.things[0].held !== undefined);
  const name = await page.evaluate((bone) => window.supple.scene.bodies[bone].name, bone);
  const first = far(await place(name), await place("ball 1"));
  await page.locator("#view").focus();
  await page.keyboard.press("l");
  await steps(page, 30);
  assert.ok(Math.abs(far(await place(name), await place("ball 1")) - first) < 1e-4);
  await page.locator("#hold-thing").click();
  await until(page, () => window.supple.scene.things[0].held === undefined);
  await page.locator("#view").focus();
  await steps(page, 60);
  assert.ok(Math.abs(far(await place(name), await place("ball 1")) - first) > 0.02);
  await page.keyboard.press("l");
});

test("a ball that is let go on the way flies on", { skip }, async () => {
  const [x, y] = await placeOf(page, "ball 1");
  await page.mouse.move(x, y);
  await page.mouse.down();
  // A step to every move of the hand, so that it is as fast on any machine.
  for (let k = 1; k <= 8; k++) {
    await page.mouse.move(x + 6 * k, y - 14 * k);
    await steps(page, 1);
  }
  const held = await place("ball 1");
  await page.mouse.up();
  await steps(page, 6);
  const flown = await place("ball 1");
  assert.ok(flown[1] > held[1] + 0.05, `from ${held} to ${flown}`);
  assert.equal(await page.evaluate(() => window.supple.frame.drags.filter(({ puller }) => puller === 1).length), 0);
});

test("the cannon throws a ball where one clicks, and the throw is undone", { skip }, async () => {
  const takes = () => page.evaluate(() => window.supple.status.takes.filter(Boolean).length);
  const chest = await page.evaluate(() => {
    const { scene, frame, screenOf } = window.supple;
    const figure = scene.bodies.length - scene.thing_bodies;
    const high = [...Array(figure).keys()].sort((a, b) => frame.poses[7 * b + 1] - frame.poses[7 * a + 1])[Math.floor(figure / 2)];
    return screenOf(high);
  });
  // What it was asked at the very step of the throw it goes on doing.
  await page.locator("#view").focus();
  await page.keyboard.press("l");
  await until(page, () => window.supple.status.tones.bodies.every((state) => state === "loose"));
  await page.keyboard.press("j");
  await page.mouse.click(...chest);
  await until(page, () => window.supple.scene.things.length === 7 && window.supple.status.takes.filter(Boolean).length === 2);
  assert.deepEqual(await page.evaluate(() => [...new Set(window.supple.status.tones.bodies)]), ["loose"]);
  await until(page, () => window.supple.frame.contacts?.length !== 0 && window.supple.frame.step > 10);
  await page.mouse.click(...chest);
  await until(page, () => window.supple.status.takes.filter(Boolean).length === 3);
  await drawn(page);
  await page.waitForTimeout(400);
  await shot("things-cannon.png");
  await page.keyboard.press("j");
  await page.locator("#undo").click();
  await until(page, () => window.supple.status.takes.filter(Boolean).length === 2);
  assert.equal(await takes(), 2);
  assert.deepEqual((await names()).length, 7);
  assert.deepEqual(page.problems, []);
});
