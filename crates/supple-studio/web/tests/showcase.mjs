// Pictures of what the studio can do: SUPPLE_ASSETS=FOLDER node tests/showcase.mjs FOLDER [NAME…]
//
// The start page by day and by night, three ragdolls on stairs with balls thrown at them, variants of a second, handles on a bone. Those of the characters themselves are
// made by table.mjs.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browse, drawn, serve, steps, until, visit } from "./browser.mjs";

const [folder = "pictures", ...names] = process.argv.slice(2);
const assets = process.env.SUPPLE_ASSETS;
if (!assets) throw new Error("SUPPLE_ASSETS names no folder of characters");
mkdirSync(folder, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "supple-showcase-"));
const browser = await browse();

async function picture(page, name) {
  await drawn(page);
  await page.waitForTimeout(700); // notices come and go
  const path = join(folder, `${name}.${process.env.PNG ? "png" : "jpg"}`);
  await page.screenshot(process.env.PNG ? { path } : { path, type: "jpeg", quality: 80 });
  console.log(path, ...page.problems);
}
/** Opens a file, paused. */
async function open(file, options = {}) {
  const studio = await serve(file);
  const page = await visit(browser, studio.address, { folded: true, ...options });
  await until(page, () => window.supple.ready && window.supple.frame !== null);
  await page.locator("#view").focus();
  if (await page.evaluate(() => window.supple.status.playing)) await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  return { studio, page };
}
const send = (page, message) => page.evaluate((message) => window.supple.send(message), message);

const ALL = {
  async start() {
    for (const colorScheme of ["light", "dark"]) {
      const studio = await serve(null, scratch, ["--quiet"]);
      const page = await visit(browser, studio.address, { folded: true, colorScheme });
      await page.locator("#gallery-scenes .card").first().waitFor();
      await page.waitForTimeout(1500); // the pictures of the scenes come
      await picture(page, `start-${colorScheme}`);
      await page.close();
      await studio.interrupt();
    }
  },

  async stairs() {
    const { studio, page } = await open(join(assets, "characters/rogue-hooded.glb"));
    const guest = (name, position) => ({ name, kind: "character", position, rotation: [0, 0, 0, 1], size: [1, 1, 1], mass: 1, friction: 0.5 });
    const ball = (k) => ({ name: `ball ${k}`, kind: "ball", position: [2 + 0.3 * k, 0.12, 1], rotation: [0, 0, 0, 1], size: [0.22, 0.22, 0.22], mass: 4, friction: 0.5 });
    const { floor } = await page.evaluate(() => window.supple.scene);
    const stairs = { name: "stairs", kind: "stairs", position: [0, floor, -1.6], rotation: [0, 1, 0, 0], size: [3.4, 1.2, 2.4], mass: 1, friction: 0.6 };
    const things = [guest("Anna", [-0.8, floor + 1.2, -2.6]), guest("Bert", [0.7, floor + 1.2, -2.6]), stairs, ball(1), ball(2), ball(3)];
    await send(page, { type: "things", things });
    await until(page, () => window.supple.scene.guests.length === 2 && window.supple.guests().length === 2 && window.supple.frame !== null);
    await send(page, { type: "state", state: "loose", bodies: [], blend: 0.1 });
    await until(page, () => window.supple.status.tones.bodies.every((state) => state === "loose"));
    // A ball at the back of each, as the cannon throws it.
    const targets = await page.evaluate(() => {
      const { scene, frame } = window.supple;
      const firsts = [0, ...scene.guests.map(({ first }) => first)];
      const count = scene.guests[0].first;
      return firsts.map((first) => {
        const high = Array.from({ length: count }, (_, k) => first + k).sort((a, b) => frame.poses[7 * b + 1] - frame.poses[7 * a + 1])[Math.floor(count / 3)];
        return [...frame.poses.slice(7 * high, 7 * high + 3)];
      });
    });
    for (const [k, target] of targets.entries()) {
      const velocity = [0.3 * (1 - k), 0.8, 7];
      const from = [target[0], target[1] + 0.05, target[2] - 0.8];
      await send(page, { type: "throw", thing: `ball ${k + 1}`, from, velocity });
      await until(page, (count) => window.supple.status.takes.filter(Boolean).length === count, k + 2);
    }
    await page.locator("#view").focus();
    await steps(page, 45);
    await page.keyboard.press("f");
    await page.waitForTimeout(900); // the camera glides
    await picture(page, "stairs");
    await page.close();
    studio.stop();
  },

  async variants() {
    const { studio, page } = await open(`${join(assets, "characters/rogue-hooded.glb")}#Running_A`);
    await steps(page, 80);
    await page.locator("summary", { hasText: "variants" }).click();
    await page.locator("#variants").click();
    await until(page, () => window.supple.sheet.computed === 16 && window.supple.sheet.drawn >= 16);
    await picture(page, "variants");
    await page.close();
    studio.stop();
  },

  async handles() {
    const { studio, page } = await open(join(assets, "gltf/mannequiny.glb"), { colorScheme: "dark" });
    await page.locator("#body").selectOption(String(await page.evaluate(() => window.supple.bodyOf("thigh.l"))));
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("4");
    await until(page, () => window.supple.gizmos.length > 0);
    await page.keyboard.press("f");
    await page.waitForTimeout(900);
    await picture(page, "handles");
    await page.close();
    studio.stop();
  },
};

for (const name of names.length ? names : Object.keys(ALL)) {
  if (!ALL[name]) throw new Error(`there is no picture ${name}: ${Object.keys(ALL).join(", ")}`);
  await ALL[name]();
}
await browser.close();
rmSync(scratch, { recursive: true, force: true });
process.exit(0);
