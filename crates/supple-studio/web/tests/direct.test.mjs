// Directing as a person meets it: a worm is pulled and moves by its own actuators, in several styles; bones keep what they are told to; keyframes.
// PICTURES names a folder for pictures.

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
  studio = await serve("worm");
  const tab = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  tab.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(JSON.parse(payload))));
  page = await visit(tab, `${studio.address}?noaa&noshadow`);
  // Directing at the start begins a take of its own only where there is a recorded step.
  await until(page, () => window.supple.frame.end > 20);
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

const press = (key) => page.keyboard.press(key);
const control = () => page.evaluate(() => window.supple.status.settings.control);
const direction = () => page.evaluate(() => window.supple.frame.direction);
const goTo = (step) => goToOf(page, step);
const steps = (count) => stepsOf(page, count);
const choose = (name) => page.locator("#body").selectOption({ label: name });
const picture = async (name) => {
  if (!process.env.PICTURES) return;
  mkdirSync(process.env.PICTURES, { recursive: true });
  await drawn(page);
  await page.screenshot({ path: join(process.env.PICTURES, `${name}.png`) });
};
/** The place that the goal of the cursor asks for, as sent with the last frame. */
const cursor = () =>
  page.evaluate(() => {
    const goal = window.supple.frame.direction.goals.find((goal) => goal.cursor && goal.aim === 0);
    return goal && { body: goal.body, level: goal.level, point: [...goal.point], target: [...goal.target] };
  });

/** Pixels of a metre at the worm, wherever the camera stands. */
async function pixelsOfMetre() {
  const [[ax, ay], [bx, by]] = [await placeOf(page, "segment_0"), await placeOf(page, "segment_6")];
  const length = await page.evaluate(() => {
    const place = (body) => [...window.supple.frame.poses.slice(7 * body, 7 * body + 3)];
    const [a, b] = [place(0), place(6)];
    return Math.hypot(...a.map((x, k) => x - b[k]));
  });
  return Math.hypot(ax - bx, ay - by) / length;
}

/** Where the mouse was last while it pulled. */
let held = [0, 0];
/** Pulls a bone on a path of the mouse, a step for each place of it; it stays held. */
async function drag(name, path) {
  await page.locator("#view").focus();
  const [x, y] = await placeOf(page, name);
  const scale = await pixelsOfMetre();
  await page.mouse.move(x, y);
  await page.mouse.down();
  await until(page, () => window.supple.frame.direction.goals.some((goal) => goal.cursor));
  for (const [dx, dy] of path) {
    const { target } = await cursor();
    held = [x + dx * scale, y + dy * scale];
    await page.mouse.move(...held);
    const moved = ([a, b]) => window.supple.frame.direction.goals.some((goal) => goal.cursor && Math.hypot(goal.target[0] - a, goal.target[1] - b) > 1e-4);
    await until(page, moved, target);
    await steps(1);
  }
}
/** In metres to the right and down. */
const UP = Array.from({ length: 20 }, (_, k) => [-0.0084 * (k + 1), -0.0167 * (k + 1)]);

test("directing begins a take at a recorded step, named by its style", async () => {
  await press("Home");
  await until(page, () => window.supple.frame.step === 0);
  await page.locator("[data-mode=goals]").click();
  await until(page, () => window.supple.status.settings.control.mode === "goals");
  const { solver, takes } = await page.evaluate(() => ({ solver: window.supple.status.settings.solver, takes: window.supple.status.takes }));
  assert.match(solver, /^reduced/);
  assert.equal(takes[1].name, "least acceleration");
  assert.equal(await page.locator("[data-mode=goals]").getAttribute("aria-pressed"), "true");
});

test("a drag is a goal of the actuators, not a force", async () => {
  await drag("segment_6", UP);
  const { body, level, point, target } = await cursor();
  assert.deepEqual([body, level], [6, 1], "the last bone, secondary");
  await drawn(page);
  const { drags, marks } = await page.evaluate(() => ({ drags: window.supple.frame.drags.length, marks: window.supple.marks }));
  assert.equal(drags, 0);
  assert.ok(target[1] > 0.2 && point[1] > 0.15, `cursor at ${target[1]} m, bone at ${point[1]} m`);
  assert.equal(marks.diamond, 1);
  assert.equal(marks.cursor, 1);
  assert.ok(marks.path > 10, `${marks.path} points of the path`);
});

test("the meter shows nothing on the root, beside what a pull from outside would use", async () => {
  const { root, pull, actuators } = await direction();
  assert.equal(actuators, 6);
  assert.ok(root < 1e-9, `${root} N`);
  assert.ok(pull.force > 10, `${pull.force} N`);
  await until(page, () => document.getElementById("root-value").textContent === "0 N, 0 N·m");
  await until(page, () => document.getElementById("pull-bar").offsetWidth > 20 && document.getElementById("root-bar").offsetWidth === 0);
  await picture("direct");
});

test("with Shift the mouse turns the bone, and the cursor stays", async () => {
  const before = await cursor();
  const turn = () => page.evaluate(() => [...window.supple.frame.poses.slice(7 * 6 + 3, 7 * 6 + 7)]);
  const angle = (a, b) => 2 * Math.acos(Math.min(1, Math.abs(a.reduce((sum, x, k) => sum + x * b[k], 0))));
  const was = await turn();
  await page.keyboard.down("Shift");
  await page.mouse.move(held[0] + 50, held[1]);
  await until(page, () => window.supple.frame.direction.goals.some((goal) => goal.cursor && goal.aim === 2));
  await until(page, () => window.supple.marks.ring === 1);
  await drawn(page);
  assert.deepEqual((await cursor()).target, before.target);
  // What the page asked for last: a turn in the plane of the worm.
  const { rotation: asked } = sent.findLast((message) => message.type === "drag");
  const wish = angle(was, asked);
  assert.ok(wish > 0.3 && wish < 0.6, `asked to turn by ${wish} rad`);
  await page.keyboard.up("Shift");
  await page.locator("#view").focus();
  await steps(60);
  // Place and orientation are both asked for at one level, and gravity pulls: it turns most of the way. The robot of keys.test.mjs turns all of it.
  const left = angle(await turn(), asked);
  console.log(`asked to turn by ${wish} rad, ${left} rad left after a second`);
  assert.ok(left < 0.4 * wish, `${left} of ${wish} rad left`);
  await picture("turned");
  await page.mouse.up();
  await until(page, () => window.supple.frame.direction.goals.length === 0);
});

test("a bone keeps what it is told to, at the level told", async () => {
  await choose("segment_0");
  for (const [handle, count] of [["orientation", 1], ["position", 2], ["height", 3], ["stop", 5], ["coast", 7]]) {
    await page.locator(`[data-handle=${handle}]`).click();
    await until(page, (count) => window.supple.status.settings.control.goals.length === count, count);
    assert.equal(await page.locator(`[data-handle=${handle}]`).getAttribute("aria-pressed"), "true");
  }
  assert.ok((await control()).goals.every((goal) => goal.body === 0 && goal.level === "primary"));
  const drawn = () => window.supple.marks.ring === 1 && window.supple.marks.place === 1 && window.supple.marks.height === 1 && window.supple.marks.cross === 4;
  await until(page, drawn);
  for (const [handle, count] of [["orientation", 1], ["stop", 3]]) {
    await page.locator(`[data-level=${handle}]`).selectOption("tertiary");
    await until(page, (count) => window.supple.status.settings.control.goals.filter((goal) => goal.level === "tertiary").length === count, count);
  }
  await page.locator("[data-handle=coast]").click();
  await until(page, () => window.supple.status.settings.control.goals.length === 5);
  await choose("segment_3");
  assert.equal(await page.locator("[data-handle=height]").getAttribute("aria-pressed"), "false");
  assert.ok(await page.locator("#remove-goals").isDisabled());
  await choose("segment_0");
  await page.locator("#remove-goals").click();
  await until(page, () => window.supple.status.settings.control.goals.length === 0 && window.supple.marks.place === 0);
  await page.locator("#drag-level").selectOption("primary");
  await until(page, () => window.supple.status.settings.control.drag_level === "primary");
  await page.locator("#drag-level").selectOption("secondary");
  await until(page, () => window.supple.status.settings.control.drag_level === "secondary");
});

test("a joint has a weight, a bound and an actuator or none; the pose has a share", async () => {
  const joint = () => page.evaluate(() => window.supple.status.settings.control.joints);
  await choose("segment_3");
  const index = await page.evaluate(() => window.supple.scene.joints.findIndex((joint) => joint.child === 3));
  await page.locator("#joint-weight").fill("1");
  await until(page, () => window.supple.status.settings.control.joints[0]?.weight === 10);
  await page.locator("#joint-torque").fill("0.5");
  await page.locator("#joint-torque").blur();
  await until(page, () => window.supple.status.settings.control.joints[0]?.max_torque === 0.5);
  assert.deepEqual(await joint(), [{ joint: index, weight: 10, max_torque: 0.5, actuation: "by_place" }]);
  await page.locator("#view").focus();
  await steps(1);
  const actuators = (await direction()).actuators;
  await page.locator("#joint-actuation").selectOption("passive");
  await until(page, () => window.supple.status.settings.control.joints[0]?.actuation === "passive");
  await page.locator("#view").focus();
  await steps(1);
  assert.equal((await direction()).actuators, actuators - 1, "one actuator less");
  // Another bone has what it had, and the first keeps its own.
  await choose("segment_2");
  assert.equal(await page.locator("#joint-actuation").inputValue(), "by_place");
  assert.equal(await page.locator("#joint-torque").inputValue(), "");
  await choose("segment_3");
  assert.equal(await page.locator("#joint-torque").inputValue(), "0.5");
  await picture("joint");
  // The page sends the whole control, as it was told last: one change after the other.
  await page.locator("#joint-actuation").selectOption("by_place");
  await until(page, () => window.supple.status.settings.control.joints[0]?.actuation === "by_place");
  await page.locator("#joint-torque").fill("");
  await page.locator("#joint-torque").blur();
  await until(page, () => window.supple.status.settings.control.joints[0]?.max_torque === null);
  await page.locator("#joint-weight").fill("0");
  await until(page, () => window.supple.status.settings.control.joints.length === 0);
  await page.locator("#pose-share").fill("0.5");
  await until(page, () => window.supple.status.settings.control.pose_share === 0.5);
  await page.locator("#joint-level").selectOption("tertiary");
  await until(page, () => window.supple.status.settings.control.joint_level === "tertiary");
  await page.locator("#view").focus();
  await steps(3);
  assert.equal(await page.evaluate(() => window.supple.frame.failed), false);
  assert.ok((await direction()).root < 1e-9);
  await page.locator("#pose-share").fill("0");
  await until(page, () => window.supple.status.settings.control.pose_share === 0);
  await page.locator("#joint-level").selectOption("secondary");
  await until(page, () => window.supple.status.settings.control.pose_share === 0 && window.supple.status.settings.control.joint_level === "secondary");
});

test("what is kept is kept", async () => {
  await goTo(0);
  await page.locator("[data-mode=goals]").click();
  await until(page, () => window.supple.status.settings.control.mode === "goals");
  await choose("segment_0");
  await page.locator("[data-handle=orientation]").click();
  await until(page, () => window.supple.status.settings.control.goals.length === 1);
  const turn = () => page.evaluate(() => [...window.supple.frame.poses.slice(3, 7)]);
  const before = await turn();
  await drag("segment_6", UP);
  await picture("kept");
  await page.mouse.up();
  const now = await turn();
  const cosine = before.reduce((sum, c, k) => sum + c * now[k], 0);
  const angle = 2 * Math.acos(Math.min(1, Math.abs(cosine)));
  assert.ok(angle < 0.05, `segment_0 turned by ${angle} rad`);
});

test("a take in another style is compared with this one", async () => {
  const one = await page.evaluate(() => window.supple.status.take);
  await goTo(0);
  await page.locator("[data-mode=goals]").click();
  await until(page, () => window.supple.status.settings.control.mode === "goals");
  await page.locator("[data-style=least_torque]").click();
  await until(page, () => window.supple.status.settings.control.style === "least_torque");
  const other = await page.evaluate(() => window.supple.status.take);
  assert.notEqual(other, one);
  assert.equal(await page.evaluate((take) => window.supple.status.takes[take].name, other), "least torque");
  await drag("segment_6", UP);
  await page.mouse.up();
  await page.locator(`[data-compare='${one}']`).click();
  await until(page, () => window.supple.frame.other && window.supple.comparison?.angles[0]?.largest > 0.05);
  await picture("styles");
  await page.locator(`[data-compare='${one}']`).click();
  await until(page, () => window.supple.status.compare === null);
});

test("keyframes stand under the timeline, lead to their time and can be removed", async () => {
  const before = await page.evaluate(() => ({ ...window.supple.status, end: window.supple.frame.end }));
  await page.locator("#view").focus();
  await goTo(10);
  await page.locator("#view").focus();
  await press("k");
  await until(page, () => window.supple.status.settings.control.keyframes.length === 1);
  await page.locator("#key-time").fill("0.9");
  await page.locator("#add-key").click();
  await until(page, () => window.supple.status.settings.control.keyframes.length === 2);
  const { take, takes } = await page.evaluate(() => window.supple.status);
  assert.deepEqual([take, takes.length], [before.take, before.takes.length], "making keyframes begins no take");
  const times = (await control()).keyframes.map((key) => key.time);
  assert.ok(Math.abs(times[0] - 10 / 60) < 1e-9 && times[1] === 0.9, String(times));
  await until(page, () => document.querySelectorAll(".key").length === 2);
  await goTo(2); // until drawn: places under the slider are those of the drawn frame
  // The thumb of the slider stands over the keyframe of its time, though another lies beyond the end of the take.
  const [slider, key] = await Promise.all([page.locator("#time").boundingBox(), page.locator(".key").first().boundingBox()]);
  const thumb = slider.x + 9 + (10 / before.end) * (slider.width - 18);
  assert.ok(Math.abs(thumb - (key.x + key.width / 2)) < 2, `thumb at ${thumb}, keyframe at ${key.x + key.width / 2}`);
  await page.locator(".key").first().click();
  await until(page, () => window.supple.frame.step === 10);
  await page.locator(".key[aria-pressed=true]").waitFor();
  assert.equal((await control()).keyframes.length, 2, "they stay when one goes elsewhere");
  await picture("keys");
  await page.locator("#remove-key").click();
  await until(page, () => window.supple.status.settings.control.keyframes.length === 1);
  assert.deepEqual((await control()).keyframes.map((key) => key.time), [0.9]);
  await page.locator("#undo").click();
  await until(page, () => window.supple.status.settings.control.keyframes.length === 2);
  // Keyframes belong to no step: undoing one, and doing it again, stays where one is.
  const place = () => page.evaluate(() => [window.supple.frame.take, window.supple.frame.step]);
  assert.deepEqual(await place(), [before.take, 10]);
  await page.locator("#redo").click();
  await until(page, () => window.supple.status.settings.control.keyframes.length === 1);
  assert.deepEqual(await place(), [before.take, 10]);
  await page.locator("#undo").click();
  await until(page, () => window.supple.status.settings.control.keyframes.length === 2);
  assert.deepEqual(await place(), [before.take, 10]);
});

test("keyframes are played from the start", async () => {
  await goTo(0);
  await page.locator("[data-mode=keyframes]").click();
  await until(page, () => window.supple.status.settings.control.mode === "keyframes");
  const { take, takes } = await page.evaluate(() => window.supple.status);
  assert.equal(takes[take].name, "keyframes");
  await page.locator("#view").focus();
  await steps(10);
  const { mode, root } = await direction();
  assert.equal(mode, "keyframes");
  assert.ok(root < 1e-9, `${root} N`);
});

test("posing by hand interrupts directing, landing ends it", async () => {
  await page.locator("#pose").check();
  await until(page, () => window.supple.status.settings.pose);
  await page.locator("#view").focus();
  await steps(2);
  await page.locator("#pose").uncheck();
  await until(page, () => !window.supple.status.settings.pose);
  await page.locator("[data-mode=landing]").click();
  await until(page, () => window.supple.status.settings.control.mode === "landing");
  await page.locator("#hertz").fill("3");
  await until(page, () => window.supple.status.settings.control.landing.hertz === 3);
  await page.locator("#view").focus();
  await steps(5);
  assert.equal((await direction()).mode, "landing");
  assert.equal(await page.evaluate(() => window.supple.frame.failed), false);
  await page.locator("[data-mode=off]").click();
  await until(page, () => window.supple.status.settings.control.mode === "off" && !window.supple.status.settings.solver.startsWith("reduced"));
  await page.locator("#meter").waitFor({ state: "hidden" });
});

test("a built-in take plays, and a change of style leaves the character to the person", async () => {
  const takes = await page.evaluate(() => window.supple.scene.scenes.find((line) => line.name === "worm").takes.map((take) => take.name));
  assert.equal(takes[0], await page.locator("#take").inputValue());
  assert.ok(takes.includes("jump") && takes.includes("wave"), String(takes));
  await page.locator("#take").selectOption("wave");
  await until(page, () => window.supple.scene.name.includes("take=wave") && window.supple.frame?.end > 400);
  // Its cursor goes away after 2.4 s: one looks at a moment before.
  await page.locator("#view").focus();
  await press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  await goTo(300);
  assert.equal((await direction()).mode, "goals");
  await until(page, () => window.supple.marks.cursor === 1 && window.supple.status.settings.control.style === "least_torque");
  await page.locator("#take-plays").waitFor();
  await picture("take");
  await page.locator("[data-style=least_velocity]").click();
  await until(page, () => !window.supple.status.settings.script && window.supple.status.settings.control.style === "least_velocity");
  await until(page, () => window.supple.frame.direction.mode === "goals" && window.supple.marks.cursor === 0);
});

test("changes that follow one another at once are all kept", async () => {
  await choose("segment_3");
  // within one task of the page: no answer of the server comes between
  await page.evaluate(() => {
    for (const part of ["[data-style=least_torque]", "[data-mode=goals]", "[data-handle=height]", "[data-handle=orientation]"]) document.querySelector(part).click();
    const level = document.getElementById("drag-level");
    level.value = "tertiary";
    level.dispatchEvent(new Event("change"));
  });
  await until(page, () => window.supple.status.settings.control.drag_level === "tertiary");
  const { style, mode, goals } = await control();
  assert.deepEqual([style, mode], ["least_torque", "goals"]);
  assert.deepEqual(goals.map((goal) => Object.keys(goal.aim)[0]).sort(), ["height", "orientation"]);
});

test("nothing went wrong in the page", () => assert.deepEqual(page.problems, []));
