// The first five minutes of an animator: a character with its clips, let go, carried back, limb by limb.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assets, drawn, open, skip, steps, until } from "./browser.mjs";

let opened, page;
before(async () => {
  if (skip) return;
  opened = await open(join(assets, "gltf/platformer-robot.glb"));
  page = opened.page;
});
after(() => opened?.close());

const all = (state) => until(page, (state) => window.supple.status.tones.bodies.every((own) => own === state), state);
/** The mean height of the bodies [m]. */
const height = () =>
  page.evaluate(() => {
    const { poses } = window.supple.frame;
    let sum = 0;
    for (let k = 1; k < poses.length; k += 7) sum += poses[k];
    return (7 * sum) / poses.length;
  });
const words = () => page.locator("#state-words").textContent();

test("a clip begins in its first pose and loops", { skip }, async () => {
  assert.equal(await words(), "It holds its pose. Springs carry it.");
  const names = await page.locator("#clip option").evaluateAll((options) => options.map((o) => o.value).filter(Boolean));
  assert.equal(names.length, 8);
  const name = names.find((n) => /walk|run/i.test(n)) ?? names[0];
  await page.locator("#clip").selectOption(name);
  await until(page, (name) => window.supple.scene.name.endsWith(`#${name}`) && window.supple.ready && window.supple.frame?.step > 2, name);
  await all("follow");
  assert.equal(await words(), "It follows its clip. Springs carry it.");
  assert.equal(await page.locator(".notice.error").count(), 0);
  await page.locator("#clip-again").check();
  await until(page, () => window.supple.status.tones.clip.again === true);
});

test("L lets it go: it falls and does not float; L carries it back", { skip }, async () => {
  await page.locator("#view").focus();
  if (await page.evaluate(() => window.supple.status.playing)) await page.keyboard.press(" ");
  await until(page, () => !window.supple.frame.playing);
  const standing = await height();
  await page.keyboard.press("l");
  await all("loose");
  await drawn(page);
  assert.match(await words(), /^It is being let go/);
  await steps(page, 90);
  assert.equal(await words(), "A ragdoll with some life in it. Nothing carries it.");
  const fallen = await height();
  assert.ok(fallen < 0.9 * standing, `from ${standing} m to ${fallen} m`);
  assert.equal(await page.evaluate(() => window.supple.status.tones.carried), 0);
  await page.keyboard.press("l");
  await all("follow");
  await steps(page, 12);
  // 0.7 s, less a fifth of a second
  assert.equal(await words(), "It is carried to its clip: 0.5 s to go.");
  await steps(page, 78);
  assert.equal(await words(), "It follows its clip. Springs carry it.");
  const back = await height();
  assert.ok(Math.abs(back - standing) < 0.12 * standing, `from ${standing} m back to ${back} m`);
});

test("a limb goes limp by itself, which is marked and undone", { skip }, async () => {
  const arm = await page.evaluate(() => (window.supple.scene.joints.find(({ name }) => /arm/i.test(name)) ?? window.supple.scene.joints.at(-1)).child);
  await page.locator("#body").selectOption(String(arm));
  await page.locator("#state-of").selectOption("limb");
  await page.locator("[data-state=limp]").click();
  await until(page, (arm) => window.supple.status.tones.bodies[arm] === "limp" && window.supple.status.tones.bodies[0] === "follow", arm);
  await drawn(page);
  assert.ok((await page.locator("#marks .mark").count()) >= 3);
  await page.locator("#view").focus();
  await steps(page, 20);
  // What the limb does, and how much of all is carried: never both that nothing carries it and that something does.
  assert.match(await words(), /^It hangs limp, without any strength\. \d+ % of the character is carried\.$/);
  await page.locator("#undo").click();
  await all("follow");
  await page.locator("#state-of").selectOption("all");
  await page.locator("#body").selectOption("");
  await page.locator("#mark-name").fill("here");
  await page.locator("#mark-name").press("Enter");
  await page.locator("#marks .mark", { hasText: "here" }).waitFor();
});

test("another clip takes over from the present one", { skip }, async () => {
  const other = await page.evaluate(() => window.supple.scene.clips.find(({ name }) => name !== window.supple.status.tones.clip.name).name);
  const generation = await page.evaluate(() => window.supple.scene.generation);
  await page.locator("#clip").selectOption(other);
  await until(page, (other) => window.supple.status.tones.clip.name === other, other);
  assert.equal(await page.evaluate(() => window.supple.scene.generation), generation);
  await page.locator("#view").focus();
  await steps(page, 30);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "states.png") });
  assert.deepEqual(page.problems, []);
});
