// Pictures of scenes as the studio shows them: node tests/pictures.mjs FOLDER [SCENE…]

import { mkdirSync } from "node:fs";
import { browse, serve, until, visit } from "./browser.mjs";

const [folder = "pictures", ...scenes] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await browse();
for (const scene of scenes.length ? scenes : ["hand", "robot", "tree:127"]) {
  const studio = await serve(scene);
  try {
    const page = await visit(browser, studio.address, { colorScheme: process.env.THEME ?? "light" });
    await until(page, () => window.supple.frame.time > 1.0);
    await page.keyboard.press("Space");
    await until(page, () => !window.supple.frame.playing);
    for (const key of process.env.KEYS ?? "") await page.keyboard.press(key);
    const before = await page.evaluate(() => window.supple.frames);
    await page.evaluate(() => window.dispatchEvent(new Event("resize")));
    await page.waitForTimeout(500);
    const name = scene.replace(/[^a-z0-9]+/gi, "-");
    await page.screenshot({ path: `${folder}/${name}.png` });
    const cost = await page.evaluate(() => window.supple.cost);
    console.log(`${folder}/${name}.png`, JSON.stringify(cost), page.problems, before);
    await page.close();
  } finally {
    studio.stop();
  }
}
await browser.close();
