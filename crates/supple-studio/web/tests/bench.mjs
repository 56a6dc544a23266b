// What the page costs: node tests/bench.mjs SCENE prints one row as JSON. `supple bench studio` calls it.

import { browse, serve, until, visit } from "./browser.mjs";

const [scene] = process.argv.slice(2);
const studio = await serve(scene, null, ["--quiet"]);
const browser = await browse();
try {
  const page = await visit(browser, studio.address, { folded: true });
  await until(page, () => window.supple.firstPicture !== null);
  const seen = await page.evaluate(() => {
    const controls = [...document.querySelectorAll(".panel :is(button, input, select, a, label.button)")];
    const first = window.supple.firstPicture;
    return { first, controls: controls.filter((control) => control.checkVisibility() && control.type !== "file").length };
  });
  // Two seconds of its own motion.
  const costs = await page.evaluate(async () => {
    const costs = [];
    const end = performance.now() + 2000;
    let calls = 0;
    while (performance.now() < end) {
      await new Promise(requestAnimationFrame);
      // Telling the graphics card what to draw is script too.
      costs.push(window.supple.cost.script + window.supple.cost.draw);
      calls = Math.max(calls, window.supple.cost.calls);
    }
    return { median: costs.sort((a, b) => a - b)[costs.length >> 1], calls };
  });
  const round = (x) => Math.round(100 * x) / 100;
  console.log(
    JSON.stringify({
      character: scene.split("/").at(-1),
      first_picture_ms: round(seen.first),
      frame_ms: round(costs.median),
      draw_calls: costs.calls,
      panel_controls: seen.controls,
    }),
  );
} finally {
  await browser.close();
  studio.stop();
}
