// Pictures of the studio: node tests/pictures.mjs FOLDER [NAME…]
//
// Without names all of them, those of the guide: `node tests/pictures.mjs ../../../docs/guide/pictures`.

import { mkdirSync } from "node:fs";
import { browse, drawn, serve, until, visit } from "./browser.mjs";

/** By name: the scene, how long it runs first [s], in which colours, with which keys and what else is done. */
const PICTURES = {
  hand: { scene: "hand", seconds: 1.35, choose: "index_middle" },
  pull: { scene: "hand", seconds: 1.0, theme: "dark", pull: ["palm", -150, -60] },
  robot: { scene: "robot", seconds: 1.6, keys: "8", choose: "left_forearm" },
  limits: { scene: "robot", seconds: 1.0, keys: "24", theme: "dark" },
  worm: { scene: "worm", seconds: 1.5 },
  direct: { scene: "worm", seconds: 0, choose: "segment_0", direct: ["goals", "orientation"], pull: ["segment_6", -60, -120] },
  cage: { scene: "worm", seconds: 1.5, keys: "cs" },
  fish: { scene: "fish", seconds: 1.0 },
  finger: { scene: "finger", seconds: 1.0, keys: "c", theme: "dark" },
  poke: { scene: "deer:2755", seconds: 0.2, keys: "d", poke: "spine_2" },
  twins: { scene: "snake", seconds: 2.2, keys: "w" },
  "tree-127": { scene: "tree:127", seconds: 1.2 },
};

const [folder = "pictures", ...names] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await browse();
for (const name of names.length ? names : Object.keys(PICTURES)) {
  const picture = PICTURES[name];
  if (!picture) throw new Error(`there is no picture ${name}: ${Object.keys(PICTURES).join(", ")}`);
  const studio = await serve(picture.scene);
  try {
    await take(name, picture, studio.address);
  } finally {
    studio.stop();
  }
}
await browser.close();

async function take(name, { seconds, theme = "light", keys = "", choose, direct, pull, poke }, address) {
  const page = await visit(browser, address, { colorScheme: theme });
  const still = () => until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  // From the start, by single steps: the same picture however fast the machine draws.
  await page.keyboard.press("Space");
  await still();
  await page.keyboard.press("Home");
  await until(page, () => window.supple.frame.step === 0);
  if (choose && (await page.evaluate((body) => window.supple.bodyOf(body), choose)) >= 0) {
    await page.locator("#body").selectOption({ label: choose });
  }
  await page.evaluate(() => document.activeElement.blur());
  for (const key of keys) await page.keyboard.press(key);
  const go = async (steps) => {
    for (let k = 0; k < steps; k++) {
      const { step } = await page.evaluate(() => window.supple.frame);
      await page.keyboard.press(".");
      await until(page, (step) => window.supple.frame.step > step, step);
    }
  };
  await go(Math.round(60 * seconds));
  if (direct) {
    const [mode, handle] = direct;
    await page.locator(`[data-mode=${mode}]`).click();
    await page.locator(`[data-handle=${handle}]`).click();
    await until(page, () => window.supple.frame.direction.goals.length > 0);
    await page.locator("#view").focus();
  }
  if (pull) {
    const [body, right, down] = pull;
    const [x, y] = await page.evaluate((body) => window.supple.screenOf(window.supple.bodyOf(body)), body);
    await page.mouse.move(x, y);
    await page.mouse.down();
    // As forces do, a goal takes time to be followed; its path is drawn where steps were done.
    const parts = direct ? 20 : 1;
    for (let k = 1; k <= parts; k++) {
      await page.mouse.move(x + (right * k) / parts, y + (down * k) / parts, { steps: 4 });
      if (direct) await go(1);
    }
    if (!direct) {
      await until(page, () => window.supple.frame.drags.some((drag) => drag.puller === 1));
      await go(40);
    }
  }
  if (poke) {
    await page.locator("#view").focus();
    await page.keyboard.press("o");
    const [x, y] = await page.evaluate((body) => window.supple.screenOf(window.supple.bodyOf(body)), poke);
    await page.mouse.move(x, y);
    await until(page, () => window.supple.tool.preview);
    await page.mouse.down();
    await until(page, () => window.supple.frame.skin.balls.length === 1);
    await drawn(page);
    await page.waitForTimeout(300); // until it is pressed in
    await go(5);
  }
  await page.waitForTimeout(2500); // until what is told of the steps is told
  const path = `${folder}/${name}.jpg`;
  await page.screenshot({ path, type: "jpeg", quality: 82 });
  const { calls } = await page.evaluate(() => window.supple.cost);
  console.log(`${path}, ${calls} draw calls`, ...page.problems);
  await page.close();
}
