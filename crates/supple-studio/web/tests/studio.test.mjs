// The studio as a person meets it, in a real browser. Every test waits on the state that the page shows, never on frames.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { binary, browse, drawn, goTo, placeOf, serve, steps, until, visit } from "./browser.mjs";

let browser;
let studio;
let page;
const folder = mkdtempSync(join(tmpdir(), "supple-"));

before(async () => {
  browser = await browse();
  studio = await serve("hand");
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

/** The state of the page as one object. */
const state = () =>
  page.evaluate(() => {
    const { frame, status, scene } = window.supple;
    return { step: frame.step, end: frame.end, time: frame.time, take: frame.take, playing: frame.playing, status, name: scene.name };
  });

const press = (key) => page.keyboard.press(key);
const pause = async () => {
  if ((await state()).playing) await press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  await drawn(page);
};

/** A screenshot of the picture has many colours: it is not blank. */
async function showsSomething() {
  await drawn(page);
  const shot = (await page.screenshot()).toString("base64");
  const colours = await page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    const box = document.getElementById("view").getBoundingClientRect();
    const pixels = new Uint32Array(pen.getImageData(box.left, box.top, box.width, box.height).data.buffer);
    return new Set(pixels).size;
  }, shot);
  assert.ok(colours > 300, `the picture has only ${colours} colours`);
}

test("the page loads and the hand moves", async () => {
  const first = await state();
  assert.equal(first.name, "hand");
  await until(page, (step) => window.supple.frame.step > step + 20, first.step);
  await showsSomething();
});

test("space pauses, steps are counted, space plays again", async () => {
  await page.locator("#view").focus();
  await pause();
  const paused = await state();
  await press(".");
  await until(page, (step) => window.supple.frame.step === step + 1, paused.step);
  await press(",");
  await until(page, (step) => window.supple.frame.step === step, paused.step);
  await showsSomething();
  await press("End");
  await until(page, (step) => window.supple.frame.step === step + 1, paused.step);
  await press("Space");
  await until(page, (step) => window.supple.frame.step > step + 5, paused.step);
});

test("a drag pulls the body after the mouse", async () => {
  await pause();
  // The hand is held still, so that only the pull moves it.
  await page.locator("#script").uncheck();
  await until(page, () => window.supple.status.settings.script === false);
  const body = await page.evaluate(() => window.supple.bodyOf("palm"));
  const pose = () => page.evaluate((b) => [...window.supple.frame.poses.slice(7 * b, 7 * b + 3)], body);
  const [x, y] = await placeOf(page, "palm");
  const start = await pose();
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x - 160, y - 20, { steps: 4 });
  await until(page, () => window.supple.frame.drags.some((d) => d.puller === 1));
  await steps(page, 40);
  await until(page, () => !document.getElementById("force").hidden);
  assert.match(await page.locator("#force").textContent(), /N$/);
  await until(page, ([b, x]) => window.supple.screenOf(b)[0] < x - 20, [body, x]); // to the left, as the mouse went
  const pulled = await pose();
  await page.mouse.up();
  const moved = Math.hypot(...pulled.map((p, k) => p - start[k]));
  assert.ok(moved > 0.01, `the palm moved ${moved} m`);
  await showsSomething();
  await until(page, () => !window.supple.frame.drags.some((d) => d.puller === 1));
  await page.locator("#script").check();
  await until(page, () => window.supple.status.settings.script === true);
});

test("P pins the chosen body, and again lets it go", async () => {
  await page.locator("#body").selectOption({ label: "index_distal" });
  await page.mouse.move(5, 300);
  await page.locator("#view").focus();
  await until(page, () => document.querySelector("#label").hidden);
  await press("p");
  await until(page, () => window.supple.status.pins.length === 1);
  const [body, name] = await page.evaluate(() => [window.supple.status.pins[0], document.querySelector("#body").selectedOptions[0].label]);
  assert.equal(name, "index_distal");
  assert.equal(body, await page.evaluate(() => window.supple.bodyOf("index_distal")));
  await press("p");
  await until(page, () => window.supple.status.pins.length === 0);
});

test("a setting changes by its slider", async () => {
  await page.locator("#gravity").fill("1.62");
  await until(page, () => Math.abs(window.supple.status.settings.gravity[1] + 1.62) < 1e-9);
  await page.locator("#torques").click();
  await until(page, () => window.supple.status.settings.torques === false);
  await page.locator("#torques").click();
  await until(page, () => window.supple.status.settings.torques === true);
});

test("scrubbing goes back, playing replays, pulling from there forks a take", async () => {
  await page.locator("#view").focus();
  if (!(await state()).playing) await press("Space");
  await until(page, () => window.supple.frame.end > 120);
  await pause();
  const poses = () => page.evaluate(() => [...window.supple.frame.poses]);
  await goTo(page, 40);
  const there = await poses();
  await goTo(page, 90);
  await goTo(page, 40);
  assert.deepEqual(await poses(), there, "the same step shows the same poses");
  assert.equal(await page.locator("#mode").textContent(), "recorded");
  await page.locator("#view").focus();
  await press("Space");
  await until(page, () => window.supple.frame.step > 45);
  await pause();
  assert.equal((await state()).take, 0, "playing does not fork");
  await goTo(page, 50);

  const [x, y] = await placeOf(page, "palm");
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 60, y - 60, { steps: 3 });
  await until(page, () => window.supple.status.takes.length === 2 && window.supple.frame.take === 1);
  await page.mouse.up();
  const { takes } = (await state()).status;
  assert.deepEqual([takes[1].parent, takes[1].first], [0, 50]);
  await press("Space");
  await until(page, () => window.supple.frame.end > 80);
  await pause();
  await showsSomething();
});

test("a take is named, saved, opened again and replayed from the command line", async () => {
  await page.locator("#take-name").fill("second try");
  await press("Enter");
  await until(page, () => window.supple.status.takes[1].name === "second try");
  const before = await state();
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save-take").click()]);
  const path = join(folder, download.suggestedFilename());
  assert.ok(path.endsWith("hand.take"));
  await download.saveAs(path);

  const replay = spawnSync(binary, ["simulate", path, "--json"], { encoding: "utf8" });
  assert.equal(replay.status, 0, replay.stderr);
  const report = JSON.parse(replay.stdout);
  assert.equal(report.state_hash, report.recorded_hash);
  assert.equal(report.identical, true);
  assert.equal(report.take, "second try");

  await page.locator("#scene").selectOption("pendulum");
  await until(page, () => window.supple.scene.name === "pendulum" && window.supple.frame);
  await page.locator("#load-take").setInputFiles(path);
  await until(page, () => window.supple.scene.name === "hand" && window.supple.frame?.take === 1);
  const again = await state();
  assert.equal(again.end, before.end);
  assert.deepEqual(again.status.takes, before.status.takes.map((take, k) => ({ ...take, end: again.status.takes[k].end })));
  await showsSomething();
});

test("another scene opens, a wrong one is refused with words", async () => {
  await page.locator("#scene").selectOption("robot");
  await until(page, () => window.supple.scene.name === "robot" && window.supple.frame?.step > 3);
  await page.locator("#view").focus();
  await pause();
  await showsSomething();
  await page.locator("#parameters").fill("torques=maybe");
  await press("Enter");
  await page.locator(".notice.error").first().waitFor();
  assert.match(await page.locator(".notice.error").first().textContent(), /torques/);
  assert.equal((await state()).name, "robot");
});

test("layers switch on and stay within 20 draw calls", async () => {
  await page.locator("#view").focus();
  for (const key of "23467") await press(key);
  const before = await page.evaluate(() => window.supple.frames);
  await press(".");
  await until(page, (n) => window.supple.frames > n, before);
  const { calls } = await page.evaluate(() => window.supple.cost);
  assert.ok(calls <= 20, `${calls} draw calls`);
  await showsSomething();
});

test("nothing went wrong in the page", () => assert.deepEqual(page.problems, []));
