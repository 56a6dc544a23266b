// The pictures of the animator's guide: SUPPLE_ASSETS=FOLDER node tests/guide.mjs FOLDER
//
// One walk through the studio, from the start page to the export, as docs/guide/animator.md tells it; a picture at each of its steps.

import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browse, drawn, goTo, serve, steps, until, visit } from "./browser.mjs";

const [folder = "pictures"] = process.argv.slice(2);
const assets = process.env.SUPPLE_ASSETS;
if (!assets) throw new Error("SUPPLE_ASSETS names no folder of characters");
mkdirSync(folder, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "supple-guide-"));
const browser = await browse();
let page;

async function picture(name) {
  await drawn(page);
  await page.waitForTimeout(700); // notices come and go
  const type = process.env.PNG ? "png" : "jpeg";
  const options = { path: join(folder, `animator-${name}.${process.env.PNG ? "png" : "jpg"}`), type };
  await page.screenshot(type === "jpeg" ? { ...options, quality: 80 } : options);
  console.log(options.path, ...page.problems);
}
const still = () => until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
/** Pauses, and takes the focus to the picture. */
async function pause() {
  await page.locator("#view").focus();
  if (await page.evaluate(() => window.supple.status.playing)) await page.keyboard.press("Space");
  await still();
}
const things = (count) => until(page, (count) => window.supple.scene.things.length === count && window.supple.frame !== null, count);
const fold = (id, open) => page.evaluate(([id, open]) => (document.getElementById(id).open = open), [id, open]);
const choose = async (pattern) => {
  const body = await page.evaluate((pattern) => window.supple.scene.bodies.findIndex(({ name }) => new RegExp(pattern, "i").test(name)), pattern);
  await page.locator("#body").selectOption(String(body));
  await page.evaluate(() => document.activeElement.blur());
};

// 1: the start page, with a file that was opened before.
const own = join(tmpdir(), "characters");
mkdirSync(own, { recursive: true });
const character = join(own, "rogue-hooded.glb");
copyFileSync(join(assets, "characters/rogue-hooded.glb"), character);
await (await serve(character, scratch)).interrupt();
let studio = await serve(null, scratch, ["--quiet"]);
page = await visit(browser, studio.address, { folded: true });
await page.locator("#gallery-scenes .card").first().waitFor();
await page.waitForTimeout(1500); // the pictures of the scenes come
await picture("1-start");

// 2: the character as its file has it.
await page.locator("#recent .card").first().click();
await until(page, () => window.supple.ready && window.supple.scene.bones.length > 0 && window.supple.frame?.step > 2);
await pause();
await picture("2-character");

// 3: a clip.
const clip = await page.evaluate(() => (window.supple.scene.clips.find(({ name }) => /run/i.test(name)) ?? window.supple.scene.clips[0]).name);
await page.locator("#clip").selectOption(clip);
await until(page, (clip) => window.supple.scene.name.endsWith(`#${clip}`) && window.supple.ready && window.supple.frame?.step > 2, clip);
await pause();
await page.keyboard.press("Home");
await until(page, () => window.supple.frame.step === 0);
await steps(page, 50);
await picture("3-clip");

// 4: let go in the midst of it.
await page.keyboard.press("l");
await steps(page, 45);
await page.keyboard.press("f");
await page.waitForTimeout(800);
await picture("4-loose");

// 5: one arm limp, the rest in its clip.
await page.keyboard.press("Control+z");
await until(page, () => window.supple.status.tones.bodies.every((state) => state === "follow"));
await page.locator("#view").focus();
await steps(page, 60);
await choose("upperarm|arm");
await page.locator("#state-of").selectOption("limb");
await page.locator("[data-state=limp]").click();
await page.locator("#view").focus();
await steps(page, 30);
await page.locator('[data-view="three_quarter"]').click();
await page.waitForTimeout(800);
await picture("5-limb");
await page.locator("#undo").click();
await page.locator("#state-of").selectOption("all");

// 6: stairs and boxes from the shelf.
await fold("things", true);
for (const [count, kind] of ["stairs", "box", "box", "table"].entries()) {
  await page.locator(`[data-thing=${kind}]`).click();
  await things(count + 1);
}
await page.locator("#thing").scrollIntoViewIfNeeded();
await page.mouse.move(400, 300);
await page.mouse.wheel(0, 500);
await page.waitForTimeout(500);
await picture("6-things");

// 7: a ball in a hand.
await page.locator("[data-thing=ball]").click();
await things(5);
await choose("hand");
const hand = await page.evaluate(() => {
  const { scene, frame } = window.supple;
  const body = scene.bodies.findIndex(({ name }) => /hand/i.test(name));
  return [...frame.poses.slice(7 * body, 7 * body + 3)];
});
await page.evaluate((hand) => {
  const { scene } = window.supple;
  const things = scene.things.map((thing) => (thing.kind === "ball" ? { ...thing, position: [hand[0], hand[1] - 0.12, hand[2]] } : thing));
  window.supple.send({ type: "things", things });
}, hand);
await until(page, (y) => Math.abs(window.supple.scene.things.at(-1).position[1] - y) < 1e-9, hand[1] - 0.12);
await page.locator("#hold-thing").click();
await until(page, () => window.supple.scene.things.at(-1).held !== undefined);
await page.locator("#view").focus();
await steps(page, 20);
await picture("7-hold");

// 8: the cannon, at a character that answers blows.
await page.evaluate(() => window.supple.send({ type: "hits", hits: [2, 0.8] }));
await page.keyboard.press("j");
const chest = await page.evaluate(() => window.supple.screenOf(window.supple.scene.bodies.findIndex(({ name }) => /spine|chest|torso/i.test(name))));
await page.mouse.click(...chest);
await things(11);
await until(page, () => window.supple.status.takes.filter(Boolean).length > 1);
await page.keyboard.press("j");
await page.mouse.move(120, 120); // no name beside the mouse
await pause();
// A moment after the ball has struck.
const { first, end } = await page.evaluate(() => window.supple.status.takes.at(-1));
const struck = first + 26;
if (end < struck) await steps(page, struck - end);
else await goTo(page, struck);
await picture("8-cannon");

// 9: ghosts and the trail of a limb.
await page.evaluate(() => {
  for (const part of document.querySelectorAll("details")) if (part.querySelector("#ghosts")) part.open = true;
});
await page.locator("#ghosts").fill("8");
await page.locator("#trails").check();
await page.locator("#trails").scrollIntoViewIfNeeded();
await page.locator("#view").focus();
await page.keyboard.press("End");
await steps(page, 20);
await picture("9-timeline");
await page.locator("#ghosts").fill("0");
await page.locator("#trails").uncheck();

// 10: the export.
await page.locator("#export").click();
await picture("10-export");

await browser.close();
await studio.interrupt();
for (const made of [scratch, own]) rmSync(made, { recursive: true, force: true });
