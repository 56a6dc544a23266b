// Contacts in the browser: cones are drawn, the car obeys the arrow keys, the ragdoll is thrown.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, placeOf, serve, until, visit } from "./browser.mjs";

let browser;
let studio;
let page;

before(async () => {
  browser = await browse();
  studio = await serve("stack:4");
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

const open = async (scene) => {
  await page.evaluate((scene) => {
    const socket = new WebSocket(`ws://${location.host}/socket`);
    socket.onopen = () => {
      socket.send(JSON.stringify({ type: "open", scene }));
      socket.send(JSON.stringify({ type: "play" }));
    };
  }, scene);
  await until(page, (scene) => window.supple.scene.name === scene && window.supple.frame?.step > 2, scene);
};

test("the contacts of a stack are drawn as cones that stick", async () => {
  await page.locator("#view").focus();
  await page.keyboard.press("9");
  await until(page, () => window.supple.cones.count === 16 && window.supple.cones.sliding === 0);
  assert.deepEqual(page.problems, []);
});

test("the arrow keys drive the car", async () => {
  await open("car");
  await page.locator("#view").focus();
  const where = () => page.evaluate(() => Array.from(window.supple.frame.poses.subarray(0, 3)));
  // Against its script, which drives on.
  await page.keyboard.down("ArrowDown");
  await until(page, () => window.supple.frame.poses[0] < -1);
  await page.keyboard.up("ArrowDown");
  const [, , before] = await where();
  await page.keyboard.down("ArrowUp");
  await page.keyboard.down("ArrowLeft");
  await until(page, (z) => window.supple.frame.poses[2] < z - 0.5, before);
  await page.keyboard.up("ArrowLeft");
  await page.keyboard.up("ArrowUp");
  assert.deepEqual(page.problems, []);
});

test("a page that comes late sees the car", async () => {
  const late = await visit(browser, `${studio.address}?noaa&noshadow`);
  const { x, y, width, height } = await late.locator("#view").boundingBox();
  const inside = (box) => {
    const [u, v] = window.supple.screenOf(0);
    return Math.abs(u - box.x) < box.width / 4 && Math.abs(v - box.y) < box.height / 4;
  };
  await until(late, inside, { x: x + width / 2, y: y + height / 2, width, height });
  await late.close();
});

test("the ragdoll is picked up and thrown", async () => {
  await open("ragdoll");
  await page.locator("#view").focus();
  await page.keyboard.press("Space"); // it falls while one aims
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  await page.keyboard.press("Home");
  await until(page, () => window.supple.frame.step === 0);
  const torso = await page.evaluate(() => window.supple.bodyOf("torso"));
  const [x, y] = await placeOf(page, "torso");
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.keyboard.press("Space");
  await until(page, () => window.supple.frame.drags.length > 0);
  await page.mouse.move(x, y - 250, { steps: 12 });
  // It is let go once it has come up: one that still lies could not fall.
  const start = await page.evaluate((body) => window.supple.scene.bodies[body].start.position[1], torso);
  await until(page, ([body, start]) => window.supple.frame.poses[7 * body + 1] > start + 0.2, [torso, start]);
  const height = await page.evaluate((body) => window.supple.frame.poses[7 * body + 1], torso);
  await page.mouse.up();
  await until(page, () => window.supple.frame.drags.length === 0);
  // It comes down again, and stays in the world.
  await until(page, ([body, height]) => window.supple.frame.poses[7 * body + 1] < height - 0.2, [torso, height]);
  assert.deepEqual(page.problems, []);
});
