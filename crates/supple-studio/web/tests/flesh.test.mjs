// Flesh in the browser: its surface moves, its cage and its strain are shown.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, drawn, serve, until, visit } from "./browser.mjs";

let browser;
let studio;
let page;

before(async () => {
  browser = await browse();
  studio = await serve("worm");
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

test("the surface of a worm lies on the ground and moves", async () => {
  await until(page, () => window.supple.frame?.step > 20 && window.supple.flesh?.vertices > 200);
  await drawn(page);
  const { lowest, edges } = await page.evaluate(() => window.supple.flesh);
  assert.ok(Math.abs(lowest) < 0.02, `${lowest}`);
  assert.equal(edges, 0);
  assert.equal(await page.evaluate(() => window.supple.frame.nodes.length / 3), 220);
});

test("C shows the cage, S the strain", async () => {
  const own = await page.evaluate(() => window.supple.flesh.colour);
  await page.locator("#view").focus();
  await page.keyboard.press("c");
  await until(page, () => window.supple.flesh.nodes === 220 && window.supple.flesh.edges > 220);
  await page.keyboard.press("s");
  await until(page, (own) => window.supple.flesh.strain > 0.1 && window.supple.flesh.colour.some((c, k) => c !== own[k]), own);
  await page.keyboard.press("s");
  await until(page, (own) => window.supple.flesh.colour.every((c, k) => Math.abs(c - own[k]) < 1e-6), own);
  assert.deepEqual(page.problems, []);
});
