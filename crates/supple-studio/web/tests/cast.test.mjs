// Several characters in one scene: each drawn from its file, with its own clip and states, touching the others and things; undone, exported, in scene files.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assets, drawn, open, skip, steps, until } from "./browser.mjs";

const file = (name) => join(assets, "gltf", name);
const shot = (name) => opened.shot(name);

let opened, page;
/** The clip that the twin goes over to. */
let next;
before(async () => {
  if (skip) return;
  opened = await open(`${file("mannequiny.glb")}#run`, { paused: true });
  page = opened.page;
});
after(() => opened?.close());

const guests = () => page.evaluate(() => window.supple.scene.guests.map(({ name, first, count }) => ({ name, first, count })));
/** The states of a figure's bodies: 0 is the scene's own character. */
const statesOf = (figure) =>
  page.evaluate((figure) => {
    const { scene, status } = window.supple;
    const guest = scene.guests[figure - 1];
    const [first, count] = guest ? [guest.first, guest.count] : [0, scene.guests[0].first];
    return [...new Set(status.tones.bodies.slice(first, first + count))];
  }, figure);
const choose = (body) => page.locator("#body").selectOption(String(body));

test("the same character once more, and one of another file", { skip }, async () => {
  await page.locator("#again").click();
  await until(page, () => window.supple.scene.guests.length === 1 && window.supple.guests().length === 1);
  await page.locator("#add-guest").setInputFiles(file("CesiumMan.glb"));
  await until(page, () => window.supple.scene.guests.length === 2 && window.supple.guests().length === 2);
  const [twin, other] = await guests();
  assert.equal(twin.first, twin.count);
  assert.equal(other.first, 2 * twin.count);
  await drawn(page);
  const measured = await page.evaluate(() => [window.supple.skin(), ...window.supple.guests()]);
  // Each is drawn where its own bodies are.
  const spans = await page.evaluate(() => {
    const { scene, frame } = window.supple;
    const all = [[0, scene.guests[0].first], ...scene.guests.map(({ first, count }) => [first, count])];
    const along = (first, count, axis) => Array.from({ length: count }, (_, k) => frame.poses[7 * (first + k) + axis]);
    return all.map(([first, count]) => [0, 1, 2].map((axis) => [Math.min(...along(first, count, axis)), Math.max(...along(first, count, axis))]));
  });
  measured.forEach(({ middle, height, stretch }, k) => {
    const inside = middle.every((x, axis) => x > spans[k][axis][0] - 0.1 && x < spans[k][axis][1] + 0.1);
    assert.ok(inside, `${middle} is not within ${JSON.stringify(spans[k])}`);
    assert.ok(height > 1.3 && height < 2.1 && stretch < 2, JSON.stringify(measured));
  });
  const places = spans.map((span) => span.map(([low, high]) => 0.5 * (low + high)));
  assert.ok(Math.abs(places[0][0] - places[1][0]) > 0.5 && Math.abs(places[1][0] - places[2][0]) > 0.5, JSON.stringify(places));
  assert.deepEqual(page.problems, []);
  // All of them are in the picture, which is not empty.
  const { width, height } = page.viewportSize();
  const seen = await page.evaluate(() => {
    const { scene, screenOf } = window.supple;
    return [0, ...scene.guests.map(({ first }) => first)].map((body) => screenOf(body));
  });
  assert.ok(seen.every(([x, y]) => x > 0 && x < width && y > 0 && y < height), JSON.stringify(seen));
  await shot("cast.png");
});

test("each follows its own clip", { skip }, async () => {
  const [twin] = await guests();
  await choose(twin.first);
  const first = await page.locator("#clip").inputValue();
  next = await page.evaluate((first) => window.supple.scene.guests[0].clips.find(({ name }) => name !== first).name, first);
  await page.locator("#clip").selectOption(next);
  await until(page, (next) => window.supple.status.tones.guest_clips[0]?.name === next, next);
  const clips = await page.evaluate(() => [window.supple.status.tones.clip.name, ...window.supple.status.tones.guest_clips.map((clip) => clip?.name ?? null)]);
  assert.deepEqual(clips, [first, next, null]);
  await page.locator("#view").focus();
  await steps(page, 20);
  assert.deepEqual(await statesOf(0), ["follow"]);
  assert.deepEqual(await statesOf(1), ["follow"]);
  assert.deepEqual(await statesOf(2), ["posed"]);
});

test("each has its own state: one falls, the others go on", { skip }, async () => {
  const [, other] = await guests();
  const height = (body) => page.evaluate((body) => window.supple.frame.poses[7 * body + 1], body);
  await choose(other.first);
  await page.locator("#view").focus();
  await page.keyboard.press("l");
  await until(page, (body) => window.supple.status.tones.bodies[body] === "loose", other.first);
  assert.deepEqual(await statesOf(2), ["loose"]);
  assert.deepEqual(await statesOf(0), ["follow"]);
  assert.deepEqual(await statesOf(1), ["follow"]);
  const before = [await height(0), await height(other.first)];
  await steps(page, 50);
  const after = [await height(0), await height(other.first)];
  assert.ok(after[1] < before[1] - 0.2, `it fell from ${before[1]} to ${after[1]}`);
  assert.ok(Math.abs(after[0] - before[0]) < 0.15, `the runner went from ${before[0]} to ${after[0]}`);
  await drawn(page);
  await shot("cast-loose.png");
  // Every figure is drawn where its bodies are: what lies is low.
  const lying = await page.evaluate(() => window.supple.guests()[1]);
  assert.ok(lying.height < 1.45, JSON.stringify(lying));
});

test("takes keep them: the step before is as it was, and each is exported", { skip }, async () => {
  const poses = await page.evaluate(() => [...window.supple.frame.poses]);
  const { step, take } = await page.evaluate(() => ({ step: window.supple.frame.step, take: window.supple.frame.take }));
  await page.evaluate(({ take }) => window.supple.send({ type: "seek", take, step: 5 }), { take });
  await until(page, () => window.supple.frame.step === 5);
  await page.evaluate(({ take, step }) => window.supple.send({ type: "seek", take, step }), { take, step });
  await until(page, (step) => window.supple.frame.step === step, step);
  assert.deepEqual(await page.evaluate(() => [...window.supple.frame.poses]), poses);
  const nodes = [];
  for (const figure of [0, 1, 2]) {
    const json = await page.evaluate(async (figure) => {
      const answer = await fetch(`baked.glb?figure=${figure}`);
      if (!answer.ok) return await answer.text();
      const bytes = await answer.arrayBuffer();
      const text = new TextDecoder().decode(new Uint8Array(bytes, 20, new DataView(bytes).getUint32(12, true)));
      return JSON.parse(text);
    }, figure);
    assert.ok(json.animations?.length >= 1, JSON.stringify(json).slice(0, 300));
    nodes.push(json.nodes.length);
  }
  assert.equal(nodes[0], nodes[1]);
  assert.notEqual(nodes[0], nodes[2]);
  const refused = await page.evaluate(async () => (await fetch("baked.glb?figure=3")).status);
  assert.equal(refused, 400);
});

test("what was put in is taken out, and undone", { skip }, async () => {
  const clip = () => page.evaluate(() => window.supple.status.tones.guest_clips[0]?.name);
  await page.locator("#thing").selectOption("CesiumMan");
  await page.locator("#remove-thing").click();
  await until(page, () => window.supple.scene.guests.length === 1 && window.supple.guests().length === 1);
  assert.equal(await clip(), next);
  assert.deepEqual(await statesOf(1), ["follow"]);
  await page.locator("#undo").click();
  await until(page, () => window.supple.scene.guests.length === 2 && window.supple.guests().length === 2);
  assert.deepEqual(await statesOf(2), ["loose"]);
  assert.deepEqual(page.problems.filter((text) => !/400/.test(text)), []);
});

test("a solid of a file lies on the floor as that has it, and a swing swings", { skip }, async () => {
  await page.locator("#add-prop").setInputFiles(join(assets, "gltf/platformer-robot.glb"));
  await until(page, () => window.supple.scene.props.length === 1 && window.supple.guests().length === 3);
  const [prop] = await page.evaluate(() => window.supple.scene.props);
  await drawn(page);
  // It is drawn where its body is, and its hull is not.
  const { middle } = (await page.evaluate(() => window.supple.guests())).at(-1);
  const place = await page.evaluate((body) => [...window.supple.frame.poses.slice(7 * body, 7 * body + 3)], prop.body);
  assert.ok(Math.hypot(...middle.map((x, k) => x - place[k])) < 0.2, `${middle} and ${place}`);
  await page.locator("[data-thing=swing]").click();
  await until(page, () => window.supple.scene.things.some(({ kind }) => kind === "swing") && window.supple.frame !== null);
  assert.ok((await page.evaluate(() => window.supple.camera.position)).every(Number.isFinite));
  await page.locator("#view").focus();
  await page.keyboard.press("f");
  await drawn(page);
  assert.ok((await page.evaluate(() => window.supple.camera.position)).every(Number.isFinite));
  await shot("cast-props.png");
  const joint = await page.evaluate(() => window.supple.scene.joints.find(({ name }) => name === "swing 1 hangs"));
  assert.equal(joint.parent, null);
  assert.deepEqual(page.problems.filter((text) => !/400/.test(text)), []);
});
