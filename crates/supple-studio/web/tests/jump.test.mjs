// The guide "Direct a jump in five minutes", followed in the page by mouse and keys, at the speed it tells.
// PICTURES names a folder for pictures.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { binary, browse, drawn, goTo, serve, until, visit } from "./browser.mjs";

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
  await goTo(page, 280);
  assert.ok((await lowest()) > 0.13, `${await lowest()} m`);
  await picture("jump-take");
});

test("a jump by hand, at the speed that the guide tells", async () => {
  await page.locator("#take").selectOption("crawl");
  await until(page, () => window.supple.scene.name.includes("crawl") && window.supple.frame?.end > 3);
  await pause();
  await press("Home");
  await until(page, () => window.supple.frame.step === 0);
  await page.locator("[data-mode=goals]").click();
  await until(page, () => window.supple.status.settings.control.mode === "goals" && window.supple.frame.take === 1);
  await page.locator("#speed").selectOption({ label: "1/4" });
  await until(page, () => window.supple.status.speed === 0.25);
  await drawn(page);
  assert.equal(await page.locator("#dt-value").textContent(), "1/60 s");
  // The tip of the head, and where places beside and above it are in the window.
  const places = await page.evaluate(() => {
    const [x, y, z] = window.supple.frame.poses.slice(7 * window.supple.bodyOf("segment_0"));
    return [[0, 0], [1, 0], [0, 1]].map(([a, b]) => window.supple.screenAt([x - 0.07 + a, y + b, z]));
  });
  const at = (right, up) => [0, 1].map((k) => places[0][k] + right * (places[1][k] - places[0][k]) + up * (places[2][k] - places[0][k]));
  const view = await page.locator("#view").boundingBox();
  assert.ok(at(0.05, 1.1)[1] > view.y, "where the mouse goes is in the picture");
  await page.mouse.move(...at(0, 0));
  await page.mouse.down();
  await until(page, () => window.supple.frame.direction.goals.some((goal) => goal.cursor && goal.body === window.supple.bodyOf("segment_0")));
  const now = () => page.evaluate(() => [window.supple.frame.time, window.supple.frame.direction.root]);
  const [start] = await now();
  await press("Space");
  // A little more than it is thick in 0.75 s, then nearly as high as the picture in 0.25 s: three seconds and one at this speed. The mouse goes by the time of the
  // simulation, as far as the page has shown it: a slow machine makes it go in larger steps.
  const [LIFT, PULL] = [0.75, 0.25];
  for (let time = 0; time < LIFT + PULL + 0.02; ) {
    const [reached, root] = await now();
    time = reached - start;
    assert.ok(root < 1e-9, `${root} N`);
    const [lifted, pulled] = [Math.min(time / LIFT, 1), Math.min(Math.max((time - LIFT) / PULL, 0), 1)];
    await page.mouse.move(...at(0.05 * lifted, 0.2 * lifted + 0.9 * pulled));
    await drawn(page);
  }
  await page.mouse.up();
  await page.locator("[data-mode=landing]").click();
  await until(page, () => window.supple.status.settings.control.mode === "landing");
  const landing = await page.evaluate(() => window.supple.frame.step);
  await until(page, (step) => window.supple.frame.step > step, landing + 120);
  await pause();
  // Back to it, as the guide says: what was recorded tells how high it came.
  let highest = 0;
  for (let step = 40; step <= landing + 60; step += 2) {
    await goTo(page, step);
    highest = Math.max(highest, await lowest());
    if (step === 44 || step === 58) await picture(step === 44 ? "jump-lifted" : "jump-pulled");
  }
  await picture("jump-landed");
  const lain = 0.08;
  console.log(`its lowest bone came ${(100 * (highest - lain)).toFixed(0)} cm off the ground`);
  assert.ok(highest > lain + 0.1, `its lowest bone came up to ${highest} m, from ${lain} m`);
  await goTo(page, landing + 120);
  assert.ok((await lowest()) < 0.1, "it came down again");
  await goTo(page, landing + 6);
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
