// The instruments: plots, loads, the solvers, the body in trouble, and what a thousand bodies cost.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, serve, until, visit } from "./browser.mjs";

let browser;
let studio;
let page;

before(async () => {
  browser = await browse();
  studio = await serve("hand");
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

/** Waits until a curve is drawn on a plot, left of the figures at its right side. */
const inked = (id) =>
  until(
    page,
    (id) => {
      const canvas = document.getElementById(id);
      const { data } = canvas.getContext("2d").getImageData(0, 0, Math.max(canvas.width - 52, 1), Math.max(canvas.height, 1));
      return data.some((byte, k) => k % 4 === 3 && byte > 100);
    },
    id,
  );

test("figures are plotted, those of a joint once its body is chosen", async () => {
  const { step } = await page.evaluate(() => window.supple.frame);
  await until(page, (step) => window.supple.frame.step > step + 60, step);
  for (const id of ["energy-plot", "gap-plot", "stages-plot", "parts-plot"]) await inked(id);
  assert.ok(await page.getByText("Choose a bone to plot its joint’s angle").isVisible());
  await page.locator("#body").selectOption({ label: "index_middle" });
  assert.ok(await page.getByText("Choose a bone to plot its joint’s angle").isHidden());
  await page.locator("#keep").check();
  await page.locator("#body").selectOption({ label: "ring_proximal" });
  assert.equal(await page.locator("#plotted").textContent(), "index_middlering_base");
  const now = await page.evaluate(() => window.supple.frame.step);
  await until(page, (step) => window.supple.frame.step > step + 60, now);
  for (const id of ["angle-plot", "torque-plot"]) await inked(id);
  assert.match(await page.locator("#angle-value").textContent(), /^-?[\d.]+°$/);
  assert.match(await page.locator("#torque-value").textContent(), /^-?[\d.]+ [µmk]?N·m$/);
});

test("what the page says of the last step is what the server measured", async () => {
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  await page.keyboard.press(".");
  await until(page, () => {
    const { frame, scene } = window.supple;
    const says = (id, text) => document.getElementById(id).textContent === text;
    return (
      says("report-parts", String(frame.substeps)) &&
      says("report-widest", scene.joints[frame.widest].name) &&
      says("report-factorisations", `${frame.factorisations} and ${frame.solves}`) &&
      says("report-limits", String(frame.limits))
    );
  });
  const shown = await page.evaluate(() => {
    const { frame, scene } = window.supple;
    return { sum: frame.stages.reduce((a, b) => a + b, 0), micros: frame.micros, stages: scene.stages };
  });
  assert.ok(shown.sum > 0 && shown.sum <= shown.micros, `${shown.sum} of ${shown.micros} µs`);
  assert.equal(await page.locator("#stages dt").count(), shown.stages.length);
});

test("loads colour the bodies, gaps then do not", async () => {
  await page.keyboard.press("7");
  assert.equal(await page.locator("#legend-low").textContent(), "1 nm");
  await page.keyboard.press("8");
  assert.match(await page.locator("#legend-high").textContent(), / k?N$/);
  assert.deepEqual(await page.evaluate(() => ["gaps", "loads"].map((layer) => document.querySelector(`[data-layer=${layer}]`).checked)), [false, true]);
  const loads = await page.evaluate(() => {
    const { frame, scene } = window.supple;
    return scene.joints.map((_, k) => frame.joints[8 * k + 1]);
  });
  assert.ok(loads.every((load) => load >= 0) && loads.some((load) => load > 0.01), String(loads));
  await page.keyboard.press("8");
  assert.ok(await page.locator("#legend").isHidden());
});

test("the solver is chosen from the server's list; one that fails marks the body", async () => {
  const names = await page.evaluate(() => window.supple.scene.solvers.map((solver) => solver.name));
  assert.deepEqual(await page.evaluate(() => [...document.getElementById("solver").options].map((option) => option.value)), names);
  for (const name of ["tree:published", "tree:acceleration"]) {
    await page.locator("#solver").selectOption(name);
    await until(page, (name) => window.supple.status.settings.solver === name, name);
  }
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => window.supple.frame.failed);
  await until(page, () => !document.getElementById("trouble").hidden);
  const body = await page.evaluate(() => window.supple.scene.bodies[window.supple.frame.trouble.body].name);
  await page.locator("#trouble", { hasText: `${body} made the step fail` }).waitFor();
  await page.locator("#mode", { hasText: "stopped" }).waitFor();
  await page.locator(".notice.error", { hasText: "use a smaller dt" }).waitFor();
  await page.locator("#fallbacks", { hasText: `${body} made the step fail` }).waitFor();
  assert.deepEqual(page.problems, []);
});

test("a thousand bodies take at most 20 draw calls", async () => {
  for (const scene of ["chain:1000", "tree:1023"]) {
    const own = await serve(scene);
    try {
      // With shadows, as people see it, and every layer.
      const large = await visit(browser, `${own.address}?noaa`);
      assert.ok((await large.evaluate(() => window.supple.scene.bodies.length)) >= 1000);
      await large.locator("#view").focus();
      const best = [];
      let most = 0;
      for (const keys of ["", "2346", "8"]) {
        for (const key of keys) await large.keyboard.press(key);
        const scripts = [];
        for (let k = 0; k < 12; k++) {
          const before = await large.evaluate(() => window.supple.frames);
          await until(large, (n) => window.supple.frames > n, before);
          const { script, calls } = await large.evaluate(() => window.supple.cost);
          scripts.push(script);
          most = Math.max(most, calls);
        }
        best.push(Math.min(...scripts).toFixed(1));
      }
      // Told, not judged: machines differ.
      console.log(`${scene}: ${most} draw calls; script at best ${best[0]} ms a frame, ${best[1]} ms with all lines, ${best[2]} ms with loads too`);
      assert.ok(most > 3 && most <= 20, `${scene}: ${most} draw calls`);
      assert.deepEqual(large.problems, []);
      await large.close();
    } finally {
      own.stop();
    }
  }
});
