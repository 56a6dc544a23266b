// What the page costs: node tests/bench.mjs SCENE prints one row as JSON. `supple bench studio` calls it.

import { readdirSync, readFileSync } from "node:fs";
import { browse, serve, until, visit } from "./browser.mjs";

/** Time that the browser's processes took so far [ms]; null where the system does not say. */
function processorTime() {
  try {
    const processes = new Map();
    for (const id of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      try {
        // After the name, which may have anything in it: state, parent, and so on.
        const fields = readFileSync(`/proc/${id}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
        processes.set(Number(id), { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) });
      } catch {
        // it has ended
      }
    }
    const own = (id) => id === process.pid || (processes.has(id) && own(processes.get(id).parent));
    let ticks = 0;
    for (const [id, { parent, ticks: of }] of processes) if (own(parent) && id !== studio.process) ticks += of;
    return processes.size > 0 ? 10 * ticks : null; // Linux tells hundredths of a second
  } catch {
    return null;
  }
}

const [scene] = process.argv.slice(2);
const studio = await serve(scene, null, ["--quiet"]);
const browser = await browse();
try {
  // What the browser itself needs to start is not counted.
  await (await browser.newPage()).close();
  const before = processorTime();
  const page = await visit(browser, studio.address, { folded: true });
  await until(page, () => window.supple.firstPicture !== null);
  const after = processorTime();
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
      first_picture_processor_ms: before === null || after === null ? null : after - before,
      frame_ms: round(costs.median),
      draw_calls: costs.calls,
      panel_controls: seen.controls,
    }),
  );
} finally {
  await browser.close();
  studio.stop();
}
