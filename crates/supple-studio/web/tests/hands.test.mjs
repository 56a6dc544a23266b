// Hands on: a body that moves fast is hit beside where it is by now; one at rest is not.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, drawn, serve, steps, until, visit } from "./browser.mjs";

let browser;
before(async () => {
  browser = await browse();
});
after(() => browser?.close());

/** Presses ten pixels above the upper edge of the block, and tells whether it is pulled. */
async function isHit(scene) {
  const studio = await serve(scene);
  try {
    const page = await visit(browser, `${studio.address}?noaa&noshadow`);
    await until(page, () => window.supple.ready && window.supple.frame.step > 0);
    await page.locator("#view").focus();
    if (await page.evaluate(() => window.supple.status.playing)) await page.keyboard.press(" ");
    await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
    await page.keyboard.press("Home");
    await until(page, () => window.supple.frame.step === 0);
    await steps(page, 5);
    const [x, y] = await page.evaluate(() => window.supple.screenOf(0));
    const label = page.locator("#label");
    let edge = y;
    for (; edge > y - 360; edge -= 6) {
      await page.mouse.move(x, edge);
      await drawn(page);
      await drawn(page);
      if (edge < y && !(await label.isVisible())) break;
    }
    assert.ok(edge < y - 6 && edge > y - 360, `the edge is ${y - edge} px above the middle`);
    await page.mouse.move(x, edge - 10);
    await page.mouse.down();
    await drawn(page);
    await drawn(page);
    const chosen = await page.locator("#body").inputValue();
    await page.mouse.up();
    assert.deepEqual(page.problems, []);
    return chosen === "0";
  } finally {
    studio.stop();
  }
}

test("a fast body is hit beside where it is by now", async () => {
  assert.equal(await isHit("block:speed=2,friction=0"), true);
});

test("a body at rest is not", async () => {
  assert.equal(await isHit("block:speed=0"), false);
});
