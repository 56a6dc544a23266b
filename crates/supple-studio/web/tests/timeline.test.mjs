// Along the slider of time: speed and contacts, the part that is meant, ghosts, trails; and the export.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assets, drawn, goTo, open, skip, steps, until } from "./browser.mjs";

let opened, page;
before(async () => {
  if (skip) return;
  opened = await open(join(assets, "gltf/CesiumMan.glb#0"), { paused: true });
  page = opened.page;
  await page.keyboard.press("Home");
  await steps(page, 60);
});
after(() => opened?.close());

test("the speed of the take is drawn along the slider", { skip }, async () => {
  await until(page, () => window.supple.timeline.speeds >= 59);
  const ink = await page.locator("#wave").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, k) => k % 4 === 3 && value > 0).length / (canvas.width * canvas.height);
  });
  assert.ok(ink > 0.1 && ink < 1, `${ink} of it is drawn`);
});

test("ghosts and the trail of a limb are those of the take", { skip }, async () => {
  await goTo(page, 30);
  await page.locator("#ghosts").fill("10");
  await until(page, () => window.supple.timeline.ghosts === 6);
  // Of the character's own mesh, each.
  assert.equal(await page.evaluate(() => window.supple.timeline.meshes), 6);
  await page.locator("#trails").check();
  await until(page, () => window.supple.timeline.trail >= 60);
  // Another bone has a trail of its own.
  await page.locator("#body").selectOption("3");
  await until(page, () => !document.getElementById("trails").checked);
  await page.locator("#trails").check();
  await until(page, () => window.supple.timeline.trails.length === 2 && window.supple.timeline.trail >= 120);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "timeline.png") });
  await page.locator("#ghosts").fill("0");
  await page.locator("#trails").uncheck();
  await page.locator("#body").selectOption("");
  await until(page, () => document.getElementById("trails").checked);
  await page.locator("#trails").uncheck();
  await until(page, () => window.supple.timeline.ghosts === 0 && window.supple.timeline.trail === 0);
});

test("the part between the marks is exported, in the frames that are asked for", { skip }, async () => {
  await page.locator("#view").focus();
  await goTo(page, 12);
  await page.locator("#view").focus();
  await page.keyboard.press("[");
  await goTo(page, 42);
  await page.locator("#view").focus();
  await page.keyboard.press("]");
  await drawn(page);
  assert.deepEqual(await page.evaluate(() => [window.supple.timeline.from, window.supple.timeline.to]), [12, 42]);
  await page.locator("#export").click();
  await page.locator("#export-fps").fill("24");
  await page.locator("#export-root").selectOption("in_place");
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "export.png") });
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#export-go").click()]);
  assert.match(download.suggestedFilename(), /^CesiumMan.*\.glb$/);
  const bytes = readFileSync(await download.path());
  const document = JSON.parse(bytes.subarray(20, 20 + bytes.readUInt32LE(12)));
  const times = document.animations.at(-1).samplers.map(({ input }) => document.accessors[input].max[0]);
  // 30 steps of 1/60 s, in frames of 1/24 s
  assert.ok(Math.abs(Math.max(...times) - 0.5) < 1 / 24, `${Math.max(...times)} s`);
});

test("the export offers what the format has, and a seam to a loop alone", { skip }, async () => {
  await page.locator("#export").click();
  const seam = page.locator("#export-seam");
  assert.equal(await seam.isDisabled(), true);
  await page.locator("#export-loop").check();
  assert.equal(await seam.isDisabled(), false);
  await page.locator("#export-loop").uncheck();
  assert.equal(await seam.isDisabled(), true);
  const offered = async (format) => {
    await page.locator("#export-format").selectOption(format);
    return Promise.all(["loop", "root", "all"].map((name) => page.locator(`#export-${name}`).isVisible()));
  };
  assert.deepEqual(await offered("vrma"), [true, true, false]);
  assert.deepEqual(await offered("usda"), [false, false, false]);
  assert.deepEqual(await offered("glb"), [true, true, true]);
  // Asked for of a .glb, it is not asked for of what cannot have it.
  await page.locator("#export-all").check();
  await page.locator("#export-format").selectOption("bvh");
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#export-go").click()]);
  assert.match(download.suggestedFilename(), /\.bvh$/);
  await page.locator("#export").click();
  await page.locator("#export-format").selectOption("glb");
  await page.locator("#export-all").uncheck();
  await page.locator("#export-cancel").click();
});

test("the motion alone is exported as .bvh, and what cannot be is refused", { skip }, async () => {
  await page.locator("#export").click();
  await page.locator("#export-format").selectOption("bvh");
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#export-go").click()]);
  const text = readFileSync(await download.path(), "utf8");
  assert.ok(text.startsWith("HIERARCHY") && /Frames: 1[0-9]/.test(text), text.slice(0, 60));
  await page.locator("#export").click();
  await page.locator("#export-format").selectOption("vrma");
  await page.locator("#export-go").click();
  await page.locator(".notice.error").first().waitFor();
  assert.deepEqual(page.problems.filter((problem) => !problem.includes("400")), []);
});
