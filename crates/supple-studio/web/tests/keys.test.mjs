// Keyframes as a person makes them: the robot is posed by hand, each pose is kept with K, and playing reaches them. Going over from goals to keyframes and back jerks no
// joint. Contacts are set, a pose is taken as the target, pins have levels. PICTURES names a folder for pictures.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse, drawn, goTo as goToOf, placeOf, serve, steps as stepsOf, until, visit } from "./browser.mjs";

let browser;
let studio;
let page;
/** What the page told the studio. */
const sent = [];

before(async () => {
  browser = await browse();
  studio = await serve("robot");
  const tab = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  tab.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(JSON.parse(payload))));
  page = await visit(tab, `${studio.address}?noaa&noshadow`);
  await until(page, () => window.supple.frame.end > 3 && window.supple.status.playing);
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

const control = () => page.evaluate(() => window.supple.status.settings.control);
const goTo = (step) => goToOf(page, step);
const steps = async (count) => {
  await page.locator("#view").focus();
  await stepsOf(page, count);
};
const choose = (name) => page.locator("#body").selectOption({ label: name });
const picture = async (name) => {
  if (!process.env.PICTURES) return;
  mkdirSync(process.env.PICTURES, { recursive: true });
  await drawn(page);
  await page.screenshot({ path: join(process.env.PICTURES, `${name}.png`) });
};
/** The angles of all joints in the last frame: a rotation vector each [rad]. */
const angles = () => page.evaluate(() => window.supple.scene.joints.map((_, k) => [...window.supple.frame.joints.slice(8 * k + 2, 8 * k + 5)]));
/** The joint whose rotation differs most [rad]. */
const apart = (a, b) => Math.max(...a.map((one, k) => Math.hypot(...one.map((x, i) => x - b[k][i]))));

/** Poses a bone by the mouse: so many pixels from where it is. */
async function pose(name, dx, dy) {
  const [x, y] = await placeOf(page, name);
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + dx, y + dy, { steps: 4 });
  await steps(20);
  await page.mouse.up();
  await drawn(page);
}

test("poses made by hand and kept with K are reached when they are played", async () => {
  await goTo(0);
  const start = await angles();
  for (const box of ["script", "hold"]) await page.locator(`#${box}`).uncheck();
  await page.locator("#gravity").fill("0");
  await page.locator("#pose").check();
  await until(page, () => window.supple.status.settings.pose && !window.supple.status.settings.hold && !window.supple.status.settings.script);
  await steps(10);
  const poses = [];
  for (const [dx, dy] of [[60, -120], [90, 60]]) {
    await pose("left_hand", dx, dy);
    await page.keyboard.press("k");
    await until(page, (count) => window.supple.status.settings.control.keyframes.length === count, poses.length + 1);
    poses.push({ step: await page.evaluate(() => window.supple.frame.step), angles: await angles() });
  }
  assert.ok(apart(start, poses[0].angles) > 0.2 && apart(poses[0].angles, poses[1].angles) > 0.2, "the poses differ");
  await picture("keys-posed");
  await page.locator("#pose").uncheck();
  await until(page, () => !window.supple.status.settings.pose);
  await goTo(0);
  for (const box of ["script", "hold"]) await page.locator(`#${box}`).uncheck();
  await page.locator("#gravity").fill("0");
  await page.locator("[data-mode=keyframes]").click();
  await until(page, () => window.supple.status.settings.control.mode === "keyframes" && !window.supple.status.settings.pose && !window.supple.status.settings.hold);
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, (end) => window.supple.frame.end > end, poses[1].step + 5);
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  for (const { step, angles: wanted } of poses) {
    await goTo(step);
    const off = apart(await angles(), wanted);
    assert.ok(off < 0.02, `at step ${step} a joint is off by ${off} rad`);
  }
  await picture("keys-played");
});

test("goals and keyframes go over into each other without a jerk", async () => {
  await goTo(0);
  for (const box of ["script", "hold"]) await page.locator(`#${box}`).uncheck();
  await page.locator("#gravity").fill("0");
  await page.locator("[data-mode=goals]").click();
  await until(page, () => window.supple.status.settings.control.mode === "goals");
  await steps(3);
  const first = await page.evaluate(() => window.supple.frame.step);
  const switched = [];
  for (const mode of ["keyframes", "goals"]) {
    await page.locator(`[data-mode=${mode}]`).click();
    await until(page, (mode) => window.supple.status.settings.control.mode === mode, mode);
    switched.push(await page.evaluate(() => window.supple.frame.step));
    await steps(18);
  }
  assert.equal(await page.evaluate(() => window.supple.frame.direction.mode), "goals");
  // Frame by frame: modes as they were done, and accelerations of the joints from their angles.
  const frames = [];
  const end = await page.evaluate(() => window.supple.frame.step);
  for (let step = first - 2; step <= end; step++) {
    await goTo(step);
    frames.push({ step, mode: await page.evaluate(() => window.supple.frame.direction.mode), angles: await angles() });
  }
  const over = 12; // 0.2 s in steps of 1/60 s
  const count = frames.filter(({ mode }) => mode === "keyframes").length;
  assert.equal(count, 18 + over - 1, "keyframes count until they were gone over from");
  const acceleration = frames.slice(2).map((frame, k) =>
    frame.angles.map((angle, j) => angle.map((x, i) => 3600 * (x - 2 * frames[k + 1].angles[j][i] + frames[k].angles[j][i]))),
  );
  const largest = Math.max(...acceleration.flat(2).map(Math.abs));
  const leaps = acceleration.slice(1).map((now, k) => apart(now, acceleration[k]));
  console.log(`largest acceleration ${largest.toFixed(1)} rad/s², largest leap ${Math.max(...leaps).toFixed(1)} rad/s² in a step`);
  assert.ok(largest > 5, "it moves");
  assert.ok(Math.max(...leaps) < 0.55 * largest, `${Math.max(...leaps)} of ${largest} rad/s² in one step`);
});

test("the present pose becomes the target pose, and stays it elsewhere", async () => {
  await page.locator("[data-mode=goals]").click();
  assert.equal(await page.locator("#pose-start").getAttribute("aria-pressed"), "true");
  await goTo(18);
  const wanted = await angles();
  const takes = await page.evaluate(() => window.supple.status.takes.length);
  await page.locator("#pose-take").click();
  await until(page, () => window.supple.status.settings.control.pose.length > 0);
  assert.equal(await page.locator("#pose-take").getAttribute("aria-pressed"), "true");
  assert.equal(await page.evaluate(() => window.supple.status.takes.length), takes, "taking a pose begins no take");
  await goTo(0);
  assert.ok((await control()).pose.length > 0);
  for (const box of ["script", "hold"]) await page.locator(`#${box}`).uncheck();
  await page.locator("#gravity").fill("0");
  await page.locator("[data-mode=goals]").click();
  await until(page, () => window.supple.status.settings.control.mode === "goals");
  const before = apart(await angles(), wanted);
  await page.locator("#pose-share").fill("1");
  await until(page, () => window.supple.status.settings.control.pose_share === 1);
  await steps(100);
  const off = apart(await angles(), wanted);
  console.log(`${before} rad from the pose, then ${off}`);
  assert.ok(before > 0.1 && off < 0.05 * before, `${before} rad from the pose, then ${off}`);
  await picture("target-pose");
  await page.locator("#pose-start").click();
  await until(page, () => window.supple.status.settings.control.pose.length === 0);
});

test("pins and each goal of a bone have levels of their own", async () => {
  await choose("left_hand");
  await page.locator("#pin").click();
  await until(page, () => window.supple.status.pins.length === 1);
  await page.locator("[data-handle=orientation]").click();
  await page.locator("[data-handle=height]").click();
  await until(page, () => window.supple.status.settings.control.goals.length === 2);
  await page.locator("[data-level=pin]").selectOption("secondary");
  await until(page, () => window.supple.status.pin_levels[0] === "secondary");
  await page.locator("[data-level=height]").selectOption("tertiary");
  await until(page, () => window.supple.status.settings.control.goals.some((goal) => goal.level === "tertiary"));
  const levels = (await control()).goals.map((goal) => [Object.keys(goal.aim)[0], goal.level]);
  assert.deepEqual(levels, [["orientation", "primary"], ["height", "tertiary"]]);
  await steps(1);
  const found = await page.evaluate(() => window.supple.frame.direction.goals.map(({ aim, level }) => [aim, level]));
  assert.deepEqual(found, [[2, 0], [1, 2], [0, 1]], "orientation, height and place as the step had them");
  await picture("levels");
  await choose("left_foot");
  assert.equal(await page.locator("[data-level]").count(), 0);
});

test("with Shift the mouse turns a bone, and it turns as asked", async () => {
  await goTo(0);
  await page.locator("#gravity").fill("0");
  await page.locator("[data-mode=goals]").click();
  await until(page, () => window.supple.status.settings.control.mode === "goals" && window.supple.status.settings.gravity[1] === 0);
  const turn = () => page.evaluate(() => [...window.supple.frame.poses.slice(7 * window.supple.bodyOf("left_hand") + 3)].slice(0, 4));
  const angle = (a, b) => 2 * Math.acos(Math.min(1, Math.abs(a.reduce((sum, x, k) => sum + x * b[k], 0))));
  const was = await turn();
  const [x, y] = await placeOf(page, "left_hand");
  await page.mouse.move(x, y);
  await page.mouse.down();
  await until(page, () => window.supple.frame.direction.goals.some((goal) => goal.cursor));
  await page.keyboard.down("Shift");
  await page.mouse.move(x + 40, y - 45, { steps: 3 });
  await until(page, () => window.supple.frame.direction.goals.some((goal) => goal.cursor && goal.aim === 2));
  await drawn(page);
  const { rotation: asked, target, point, body } = sent.findLast((message) => message.type === "drag");
  assert.ok(angle(was, asked) > 0.4, `asked to turn by ${angle(was, asked)} rad`);
  await page.keyboard.up("Shift");
  await steps(120);
  const left = angle(await turn(), asked);
  const goal = await page.evaluate(() => ({ ...window.supple.frame.direction.goals.find((goal) => goal.cursor && goal.aim === 0) }));
  const away = Math.hypot(...[0, 1, 2].map((k) => goal.point[k] - target[k]));
  console.log(`asked to turn by ${angle(was, asked)} rad, ${left} rad left after 2 s, ${away} m from its place`);
  assert.ok(left < 0.01, `${left} of ${angle(was, asked)} rad left`);
  assert.ok(away < 0.01, `body ${body}, point ${point}: ${away} m from its place`);
  await picture("turned-hand");
  await page.mouse.up();
});

test("contacts are set while it is directed", async () => {
  await page.locator("#contacts").selectOption("off");
  await until(page, () => window.supple.status.settings.contacts === "off");
  await page.locator("#contact-stiffness").waitFor({ state: "hidden" });
  await steps(1);
  await page.locator("#contacts").selectOption("all");
  await until(page, () => window.supple.status.settings.contacts === "all");
  await page.locator("#contact-stiffness").fill("4");
  await page.locator("#contact-slip").fill("-2");
  await until(page, () => Math.abs(window.supple.status.settings.contact_stiffness - 1e4) < 1e-6 && Math.abs(window.supple.status.settings.contact_slip - 0.01) < 1e-12);
  assert.equal(await page.locator("#contact-stiffness-value").textContent(), "10 kN/m");
  assert.equal(await page.locator("#contact-slip-value").textContent(), "10 mm/s");
  await steps(2);
  assert.equal(await page.evaluate(() => window.supple.frame.failed), false);
  await page.locator("#undo").click();
  await until(page, () => Math.abs(window.supple.status.settings.contact_slip - 1e-3) < 1e-12);
  await page.locator("[data-mode=off]").click();
  await page.locator("#contact-stiffness").waitFor({ state: "hidden" });
});

test("nothing went wrong in the page", () => assert.deepEqual(page.problems, []));
