// Soft skin as a person meets it: a ball pokes it, a hand pulls it; colours, proxies and the character beside itself; going back shows the same again.
// PICTURES names a folder for pictures.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse, drawn, goTo as goToOf, serve, steps as stepsOf, until, visit } from "./browser.mjs";

let browser;
let studio;
let page;

before(async () => {
  browser = await browse();
  studio = await serve("tube:2");
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  await page.keyboard.press("Home");
  await until(page, () => window.supple.frame.step === 0);
  // Without weight nothing but hands touches it; pinned, it does not fly away.
  await page.locator("#gravity").fill("0");
  await until(page, () => Math.abs(window.supple.status.settings.gravity[1]) < 1e-9);
  for (const count of [1, 2]) {
    await page.locator("#body").selectOption({ index: count });
    await page.locator("#pin").click();
    await until(page, (count) => window.supple.status.pins.length === count, count);
  }
  await page.locator("#view").focus();
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

const press = (key) => page.keyboard.press(key);
const soft = async () => {
  await drawn(page);
  return page.evaluate(() => window.supple.soft);
};
const frame = () =>
  page.evaluate(() => {
    const { step, end, take, poses, skin } = window.supple.frame;
    const balls = skin.balls.map(({ centre, radius }) => ({ centre: [...centre], radius }));
    return { step, end, take, poses: [...poses], displacements: [...skin.displacements], balls, pressures: skin.pressures.length };
  });
const steps = (count) => stepsOf(page, count);
const goTo = async (to) => {
  await goToOf(page, to);
  await page.locator("#view").focus();
};
const picture = async (name) => {
  if (!process.env.PICTURES) return;
  mkdirSync(process.env.PICTURES, { recursive: true });
  await drawn(page);
  await page.screenshot({ path: join(process.env.PICTURES, `${name}.png`) });
};
/** Where the middle of the skin is in the window: the mouse there meets its surface. */
const middle = async () => {
  await drawn(page);
  return page.evaluate(() => {
    const count = window.supple.frame.skin.displacements.length / 3;
    const mean = [0, 0, 0];
    for (let v = 0; v < count; v++) window.supple.vertexAt(v).forEach((x, k) => (mean[k] += x / count));
    return window.supple.screenAt(mean);
  });
};

test("the surface is drawn where bones and displacements have it", async () => {
  await until(page, () => window.supple.flesh?.vertices === 292);
  await until(page, () => window.supple.soft.displacement < 1e-6 && window.supple.soft.apart < 1e-6);
  assert.equal((await soft()).triangles, 580);
  assert.equal(await page.evaluate(() => window.supple.frame.nodes.length), 0, "places are not sent besides");
});

let poked; // the frame of the deepest dent
test("a ball under the mouse dents the skin and moves the skeleton", async () => {
  const before = await frame();
  await press("o");
  await until(page, () => window.supple.tool.tool === "poke");
  assert.equal(await page.locator("[data-tool=poke]").getAttribute("aria-pressed"), "true");
  const [x, y] = await middle();
  await page.mouse.move(x, y);
  await until(page, () => window.supple.tool.preview);
  await page.mouse.down();
  await until(page, () => window.supple.frame.skin.balls.length === 1);
  // until it rests
  await steps(40);
  await until(page, () => window.supple.soft.apart > 1e-3 && window.supple.soft.balls === 1);
  const { displacement, pressure, balls } = await soft();
  assert.ok(displacement > 2e-3, `dented by ${displacement} m`);
  assert.ok(pressure > 100, `${pressure} Pa`);
  assert.equal(balls, 1);
  poked = await frame();
  const turned = Math.hypot(...poked.poses.slice(3, 7).map((q, k) => q - before.poses[3 + k]));
  assert.ok(turned > 1e-3, `the first bone turned by ${2 * turned} rad`);
  // What is drawn does not reach into the ball.
  const [ball] = poked.balls;
  const nearest = await page.evaluate(({ centre, count }) => {
    const distance = (v) => Math.hypot(...window.supple.vertexAt(v).map((p, k) => p - centre[k]));
    return Math.min(...Array.from({ length: count }, (_, v) => distance(v)));
  }, { centre: ball.centre, count: poked.displacements.length / 3 });
  assert.ok(nearest > ball.radius - 1e-3 && nearest < ball.radius + 5e-3, `${nearest} m from the middle of a ball of ${ball.radius} m`);
  await picture("poke");
});

test("D colours by displacement, R by pressure, with a legend", async () => {
  const colours = async () => {
    await drawn(page);
    return page.evaluate(() => window.supple.flesh.colours);
  };
  const own = await colours();
  await press("d");
  await until(page, (own) => Math.abs(window.supple.flesh.colours - own) > 1, own);
  assert.equal(await page.locator("#legend-name").textContent(), "Displacement");
  assert.match(await page.locator("#legend-low").textContent(), / [µm]?m$/);
  assert.match(await page.locator("#legend-high").textContent(), / [µm]?m$/);
  assert.ok(await page.locator("#legend").isVisible());
  await picture("displacement");
  const displaced = await colours();
  await press("r");
  await until(page, (was) => Math.abs(window.supple.flesh.colours - was) > 1, displaced);
  assert.equal(await page.locator("#legend-name").textContent(), "Pressure");
  assert.match(await page.locator("#legend-high").textContent(), /Pa$/);
  assert.equal(await page.locator("[data-layer=displacement]").isChecked(), false, "one colouring at a time");
  await picture("pressure");
  await press("r");
  await until(page, (own) => Math.abs(window.supple.flesh.colours - own) < 1e-3, own);
  assert.ok(await page.locator("#legend").isHidden());
});

test("X shows proxies, T what was tested", async () => {
  await press("x");
  await until(page, () => window.supple.soft.proxies === 2 && window.supple.soft.proxyTriangles > 8);
  await press("t");
  await until(page, () => window.supple.soft.tested > 0 && window.supple.soft.tested <= window.supple.soft.triangles);
  await picture("proxies");
  await press("x");
  await press("t");
  await until(page, () => window.supple.soft.proxies === 0 && window.supple.soft.tested === 0);
});

test("W draws the character twice, the second with its skin carried by the bones alone", async () => {
  const calls = () => page.evaluate(() => window.supple.cost.calls);
  const alone = await calls();
  await press("w");
  await until(page, (alone) => window.supple.soft.twin && window.supple.cost.calls > alone, alone);
  const { apart, displacement } = await soft();
  assert.ok(apart > 0.5 * displacement, `the two differ by ${apart} m`);
  const [one, other] = await Promise.all(["#soft-label", "#twin-label"].map((id) => page.locator(id).boundingBox()));
  assert.ok(other.x - one.x > 100, `labels at ${one.x} and ${other.x}`);
  assert.equal(await page.locator("#twin-label").textContent(), "Carried by the bones alone");
  await picture("twins");
  await press("w");
  await until(page, () => !window.supple.soft.twin);
  await page.locator("#twin-label").waitFor({ state: "hidden" });
});

test("the wheel makes the ball larger, with Shift it presses deeper", async () => {
  const before = await page.evaluate(() => window.supple.tool);
  await page.mouse.wheel(0, -200);
  await until(page, (was) => window.supple.tool.radius > 1.1 * was && window.supple.frame.skin.balls[0].radius > 1.1 * was, before.radius);
  await page.mouse.wheel(0, 200);
  await until(page, (was) => Math.abs(window.supple.tool.radius / was - 1) < 1e-6, before.radius);
  await page.keyboard.down("Shift");
  await page.mouse.wheel(0, -200);
  await until(page, (was) => window.supple.tool.press > was + 0.1, before.press);
  await page.mouse.wheel(0, 200);
  await page.keyboard.up("Shift");
  await until(page, (was) => Math.abs(window.supple.tool.press - was) < 1e-6, before.press);
});

test("let go, it comes back", async () => {
  await page.mouse.up();
  await until(page, () => window.supple.frame.skin.balls.length === 0);
  const dent = (await soft()).displacement;
  await steps(60);
  const { displacement } = await soft();
  assert.ok(displacement < 0.2 * dent, `${dent} m came back to ${displacement} m`);
  await picture("recovered");
});

test("going back in time shows the same poke again", async () => {
  const { end } = await frame();
  await goTo(poked.step);
  const again = await frame();
  assert.deepEqual(again.displacements, poked.displacements);
  assert.deepEqual(again.poses, poked.poses);
  await goTo(poked.step - 5);
  await until(page, () => window.supple.soft.balls === 1);
  await steps(5);
  const replayed = await frame();
  assert.deepEqual(replayed.displacements, poked.displacements);
  assert.deepEqual([replayed.take, replayed.end], [poked.take, end], "looking begins no take");
  await goTo(end);
});

test("a grabbed vertex follows the mouse", async () => {
  await press("g");
  await until(page, () => window.supple.tool.tool === "grab");
  const [x, y] = await middle();
  await page.mouse.move(x, y);
  await page.mouse.down();
  await until(page, () => window.supple.frame.skin.grabs.length === 1);
  const grab = () =>
    page.evaluate(() => {
      const { vertex, target } = window.supple.frame.skin.grabs[0];
      const at = window.supple.vertexAt(vertex);
      const d = window.supple.frame.skin.displacements;
      return { vertex, at, target: [...target], displacement: Math.hypot(d[3 * vertex], d[3 * vertex + 1], d[3 * vertex + 2]) };
    });
  const before = await grab();
  await page.mouse.move(x, y - 90);
  await until(page, (y) => window.supple.frame.skin.grabs[0].target[1] > y + 0.02, before.target[1]);
  await steps(15);
  const after = await grab();
  assert.equal(after.vertex, before.vertex);
  assert.ok(after.at[1] > before.at[1] + 0.01, `from ${before.at[1]} m to ${after.at[1]} m`);
  assert.ok(after.displacement > 1e-3, `drawn out by ${after.displacement} m`);
  await page.locator("#force").waitFor();
  await picture("grab");
  await page.mouse.up();
  await until(page, () => window.supple.frame.skin.grabs.length === 0);
  await press("g");
  await until(page, () => window.supple.tool.tool === "pull");
});

test("what touches the skin by a scene's own motion is drawn where it is", async () => {
  await page.locator("#scene").selectOption("snake");
  await until(page, () => window.supple.scene.name === "snake" && window.supple.frame?.step > 5);
  const [first] = await page.evaluate(() => window.supple.frame.obstacles.map(({ obstacle }) => obstacle));
  assert.equal(await page.evaluate((k) => window.supple.scene.obstacles[k].name, first), "fish");
  const apart = () => {
    const { obstacle, pose } = window.supple.frame.obstacles[0];
    const { position } = window.supple.scene.obstacles[obstacle].frame;
    return Math.hypot(...position.map((p, k) => p - pose[k])) > 0.02;
  };
  await until(page, apart);
  const there = () => {
    const { obstacle, pose } = window.supple.frame.obstacles[0];
    const drawn = window.supple.obstacleAt(obstacle);
    return Math.hypot(...drawn.map((p, k) => p - pose[k])) < 1e-6;
  };
  await press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  await until(page, there);
});

test("without skin the tools say so", async () => {
  await page.locator("#scene").selectOption("pendulum");
  await until(page, () => window.supple.scene.name === "pendulum");
  assert.ok(await page.locator("#touch").isHidden());
  await page.locator("#view").focus();
  await press("o");
  await page.getByText("This scene has no soft skin").waitFor();
});

test("nothing went wrong in the page", () => assert.deepEqual(page.problems, []));
