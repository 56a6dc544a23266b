// The guide "Direct a jump in five minutes", followed in the page by mouse and keys. One step for each place of the mouse: no clock decides.
// PICTURES names a folder for pictures.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { binary, browse, drawn, goTo, serve, steps, until, visit } from "./browser.mjs";

let browser;
let studio;
let page;
const folder = mkdtempSync(join(tmpdir(), "supple-jump-"));

before(async () => {
  browser = await browse();
  studio = await serve("worm:take=jump");
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

const press = (key) => page.keyboard.press(key);
const pause = async () => {
  await page.locator("#view").focus();
  await press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
};
const picture = async (name) => {
  await drawn(page);
  if (!process.env.PICTURES) return;
  mkdirSync(process.env.PICTURES, { recursive: true });
  await page.screenshot({ path: join(process.env.PICTURES, `${name}.png`) });
};
/** How high the lowest bone is [m]. */
const lowest = () => page.evaluate(() => Math.min(...window.supple.scene.bodies.map((_, body) => window.supple.frame.poses[7 * body + 1])));

test("the built-in jump begins when the page is there, and the page tells the step it is done in", async () => {
  await until(page, () => window.supple.frame.end > 800);
  await pause();
  await until(page, () => document.getElementById("dt-value").textContent === "1/1000 s");
  await goTo(page, 0);
  assert.ok((await lowest()) < 0.1);
  await goTo(page, 450);
  assert.ok((await lowest()) > 0.3, `${await lowest()} m`);
  await picture("jump-take");
});

test("a jump by hand", async () => {
  await page.locator("#take").selectOption("crawl");
  await until(page, () => window.supple.scene.name.includes("crawl") && window.supple.frame?.end > 3);
  await pause();
  await press("Home");
  await until(page, () => window.supple.frame.step === 0);
  await page.locator("[data-mode=goals]").click();
  await until(page, () => window.supple.status.settings.control.mode === "goals" && window.supple.frame.take === 1);
  await drawn(page);
  assert.equal(await page.locator("#dt-value").textContent(), "1/60 s");
  // The tip of the head, and where places beside and above it are in the window.
  const places = await page.evaluate(() => {
    const [x, y, z] = window.supple.frame.poses.slice(7 * window.supple.bodyOf("segment_0"));
    return [[0, 0], [1, 0], [0, 1]].map(([a, b]) => window.supple.screenAt([x - 0.07 + a, y + b, z]));
  });
  const at = (right, up) => [0, 1].map((k) => places[0][k] + right * (places[1][k] - places[0][k]) + up * (places[2][k] - places[0][k]));
  await page.mouse.move(...at(0, 0));
  await page.mouse.down();
  await until(page, () => window.supple.frame.direction.goals.some((goal) => goal.cursor && goal.body === window.supple.bodyOf("segment_0")));
  let highest = 0;
  // As much as it is thick in 0.7 s, then nearly as high as it is long in 0.25 s.
  for (let k = 1; k <= 14; k++) {
    await page.mouse.move(...at((0.05 * k) / 14, (0.15 * k) / 14));
    await steps(page, 3);
  }
  await picture("jump-lifted");
  for (let k = 1; k <= 15; k++) {
    await page.mouse.move(...at(0.05, 0.15 + (0.75 * k) / 15));
    await steps(page, 1);
    highest = Math.max(highest, await lowest());
  }
  assert.ok((await page.evaluate(() => window.supple.frame.direction.root)) < 1e-9);
  await picture("jump-pulled");
  await page.mouse.up();
  await page.locator("[data-mode=landing]").click();
  await until(page, () => window.supple.status.settings.control.mode === "landing");
  await page.locator("#view").focus();
  const start = await page.evaluate(() => window.supple.frame.step);
  for (let k = 0; k < 8; k++) {
    await steps(page, 3);
    highest = Math.max(highest, await lowest());
    if (k === 3) await picture("jump-air");
  }
  await steps(page, 90);
  await picture("jump-landed");
  assert.ok(highest > 0.13, `its lowest bone came up to ${highest} m`); // 5 cm off the ground: it lies at 0.08 m
  assert.ok((await lowest()) < 0.1, "it came down again");
  // Back to it, as the guide says.
  await goTo(page, start + 6);
  assert.equal(await page.locator("#mode").textContent(), "recorded");
});

test("it is saved, and done again by the command line", async () => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save-take").click()]);
  const path = join(folder, download.suggestedFilename());
  await download.saveAs(path);
  const replay = spawnSync(binary, ["simulate", path, "--json"], { encoding: "utf8" });
  assert.equal(replay.status, 0, replay.stderr);
  assert.equal(JSON.parse(replay.stdout).identical, true);
});

test("nothing went wrong in the page", () => assert.deepEqual(page.problems, []));
