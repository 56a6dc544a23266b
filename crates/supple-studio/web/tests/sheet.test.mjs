// The contact sheet: a part of a take is brushed, sixteen variants of it are computed beside the run, and the one that is clicked is a take with the same poses.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assets, drawn, open, skip, steps, until } from "./browser.mjs";

let opened, page;
before(async () => {
  if (skip) return;
  opened = await open(`${join(assets, "gltf/CesiumMan.glb")}#0`, { paused: true });
  page = opened.page;
  const { step } = await page.evaluate(() => window.supple.frame);
  if (step < 90) await steps(page, 90 - step);
});
after(() => opened?.close());

const shot = (name) => opened.shot(name);
const sheet = () => page.evaluate(() => window.supple.sheet);
const all = () => until(page, () => window.supple.sheet.computed === 16 && window.supple.sheet.drawn >= 16);
const far = (a, b) => Math.max(...a.map((x, k) => (k % 7 < 3 ? Math.abs(x - b[k]) : 0)));

test("a part is brushed on the wave of the take", { skip }, async () => {
  const box = await page.locator("#wave").boundingBox();
  const { end } = await page.evaluate(() => window.supple.frame);
  const at = (step) => box.x + (box.width * step) / end;
  await page.mouse.move(at(end - 60), box.y + 5);
  await page.mouse.down();
  await page.mouse.move(at(end - 30), box.y + 5);
  await page.mouse.move(at(end), box.y + 5);
  await page.mouse.up();
  const { from, to } = await page.evaluate(() => window.supple.timeline);
  assert.ok(Math.abs(from - (end - 60)) <= 1 && to === end, `${from} to ${to} of ${end}`);
});

test("sixteen variants are computed while the run goes on, and drawn", { skip }, async () => {
  const before = await page.evaluate(() => ({ step: window.supple.frame.step, takes: window.supple.status.takes.filter(Boolean).length }));
  // The small pictures show the character wherever the camera stands: so near that nothing else could be told apart.
  await page.locator("#view").focus();
  for (let k = 0; k < 40; k++) await page.keyboard.press("+");
  await page.locator("#variants").click();
  await all();
  const { part, last } = await sheet();
  const { from, to } = await page.evaluate(() => window.supple.timeline);
  assert.deepEqual([part.from, part.to], [from, to]);
  // They differ from one another, the weakest from the strongest most; full strength is what was recorded.
  assert.ok(far(last[0], last[10]) > 0.2, `weakest and full strength are ${far(last[0], last[10])} m apart`);
  for (let k = 1; k < 10; k++) assert.ok(far(last[k], last[k - 1]) > 1e-6, `${k} is as ${k - 1}`);
  const recorded = await page.evaluate(() => [...window.supple.frame.poses]);
  assert.ok(far(last[10], recorded) < 1e-5, `full strength is ${far(last[10], recorded)} m from what was recorded`);
  // The take itself is as it was, and none was added.
  assert.deepEqual(await page.evaluate(() => ({ step: window.supple.frame.step, takes: window.supple.status.takes.filter(Boolean).length })), before);
  const pictures = await page.evaluate(() =>
    [...document.querySelectorAll(".variant canvas")].map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.reduce((sum, x, k) => (sum * 31 + x * (k + 1)) % 1000003, 7);
    }),
  );
  assert.ok(new Set(pictures).size >= 14, `${new Set(pictures).size} different pictures`);
  await drawn(page);
  await shot("sheet.png");
});

test("the one that is clicked is a take that ends as the picture does", { skip }, async () => {
  const { part, last } = await sheet();
  const takes = await page.evaluate(() => window.supple.status.takes.filter(Boolean).length);
  await page.locator(".variant").nth(2).click();
  await until(page, (count) => window.supple.status.takes.filter(Boolean).length === count + 1, takes);
  await until(page, ({ to }) => window.supple.frame.step === to && window.supple.frame.end === to, part);
  const poses = await page.evaluate(() => [...window.supple.frame.poses]);
  assert.ok(far(poses, last[2]) < 1e-6, `${far(poses, last[2])} m from the picture`);
  assert.equal(await page.evaluate(() => window.supple.status.takes[window.supple.status.take].name), "strength 0.20");
  // It plays on from there, and is undone.
  await page.locator("#view").focus();
  await steps(page, 5);
  assert.equal(await page.evaluate(() => window.supple.frame.end), part.to + 5);
  await page.locator("#undo").click();
  await until(page, (count) => window.supple.status.takes.filter(Boolean).length === count, takes);
});

test("timing, style, gravity and a push", { skip }, async () => {
  for (const of of ["delay", "style", "gravity", "seed"]) {
    if (!(await page.locator("#sheet").isVisible())) await page.locator("#variants").click();
    await page.locator("#sheet-of").selectOption(of);
    await all();
    const { last } = await sheet();
    const apart = Math.max(...last.map((poses) => far(poses, last[0])));
    // A figure that is carried feels no gravity but where springs give way.
    assert.ok(apart > (of === "gravity" ? 1e-4 : 0.01), `${of}: at most ${apart} m apart`);
  }
  await drawn(page);
  await shot("sheet-push.png");
  await page.locator("#sheet-close").click();
  assert.deepEqual(page.problems, []);
});

test("what cannot be varied is told", { skip }, async () => {
  const status = (words) => page.evaluate(async (words) => (await fetch(`variant/0?every=1&${words}`)).status, words);
  assert.equal(await status("from=10&to=5"), 400);
  assert.equal(await status("from=0&to=5&strength=-1"), 400);
  assert.equal(await status("from=0&to=5&strenth=1"), 400);
  assert.equal(await status("from=0&to=100000"), 400);
});
