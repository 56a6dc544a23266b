// Comparing two takes of a character: both are drawn with the materials of its file.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assets, drawn, goTo, open, skip, steps, until } from "./browser.mjs";

let opened, page;
before(async () => {
  if (skip) return;
  opened = await open(`${join(assets, "gltf", "CesiumMan.glb")}#0`, { paused: true });
  page = opened.page;
});
after(() => opened?.close());

/** Mean red, green and blue of the pixels that differ between two pictures, and how many there are. */
function differing(before, after) {
  return page.evaluate(
    async ([before, after]) => {
      const pixels = async (text) => {
        const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${text}`)).blob());
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height).data;
      };
      const [a, b] = [await pixels(before), await pixels(after)];
      const sum = [0, 0, 0];
      let count = 0;
      for (let k = 0; k < a.length; k += 4) {
        if (Math.abs(a[k] - b[k]) + Math.abs(a[k + 1] - b[k + 1]) + Math.abs(a[k + 2] - b[k + 2]) < 30) continue;
        for (let c = 0; c < 3; c++) sum[c] += b[k + c];
        count++;
      }
      return { count, mean: sum.map((x) => x / count) };
    },
    [before.toString("base64"), after.toString("base64")],
  );
}

test("the other take is drawn with its own materials", { skip }, async () => {
  await steps(page, 60);
  await goTo(page, 10);
  await page.keyboard.press("l");
  await until(page, () => window.supple.status.takes.length === 2);
  await page.locator("#view").focus();
  await steps(page, 50);
  await drawn(page);
  const clip = await page.locator("#view").boundingBox();
  const alone = await page.screenshot({ clip });
  await page.locator("[data-compare='0']").click();
  await until(page, () => window.supple.frame.other && window.supple.otherMeshes > 0);
  assert.equal(await page.evaluate(() => window.supple.otherMeshes), 1);
  await drawn(page);
  const both = await page.screenshot({ clip });
  await opened.shot("compared.png");
  const { count, mean } = await differing(alone, both);
  // A man's worth of pixels; he is white, blue and grey, not of the one colour that figures without a file have there.
  assert.ok(count > 2000, `${count} pixels`);
  const [red, , blue] = mean;
  assert.ok(Math.abs(red - blue) < 40, `mean colour ${mean}`);
  await page.locator("[data-compare='0']").click();
  await until(page, () => window.supple.otherMeshes === 0);
  assert.deepEqual(page.problems, []);
});
