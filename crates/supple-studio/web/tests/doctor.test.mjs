// The doctor of rigs in the page: what is wrong with a file is told beside what was made of it, and mended by a click.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse, serve, until, visit } from "./browser.mjs";

/** An arm whose upper part weighs next to nothing, and two boxes, one in the other by half. */
const broken = `<mujoco><worldbody>
  <body name="shoulder" pos="0 1 1.5"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/>
    <body name="dust" pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04" mass="1e-7"/>
      <body name="fist" pos=".3 0 0"><joint name="c" axis="0 1 0"/><geom type="sphere" size=".06"/></body></body></body>
  <body name="one" pos="0 0 1"><freejoint/><geom type="box" size="0.2 0.2 0.2"/></body>
  <body name="two" pos="0.2 0 1"><freejoint/><geom type="box" size="0.2 0.2 0.2"/></body>
</worldbody></mujoco>`;

const scratch = mkdtempSync(join(tmpdir(), "supple-doctor-"));
let browser;
let studio;
let page;

before(async () => {
  const file = join(scratch, "broken.xml");
  writeFileSync(file, broken);
  browser = await browse();
  studio = await serve(file);
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

const said = () => page.locator("#doctor").textContent();
const findings = () => page.locator("#doctor-findings li").allTextContents();

test("what is wrong with a file is told, the gravest first", async () => {
  await until(page, () => /[1-9]\d* problems? found/.test(document.getElementById("doctor").textContent));
  const lines = await findings();
  assert.match(lines[0], /^dust: it has 1\.0e-7 kg.*Fix: give it/);
  assert.match(lines.at(-1), /^two: it overlaps body "one" by 0\.2000 m at the start\. Fix: let the two not touch/);
  assert.match(await said(), new RegExp(`^Doctor: ${lines.length} problems? found; it survived 2 s of jerking\\.`));
  assert.equal(await page.locator("#mend").isVisible(), true);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "doctor.png") });
});

test("a click mends it, and undo brings the file's own model back", async () => {
  await page.locator("#mend").click();
  await until(page, () => /no problems found/.test(document.getElementById("doctor").textContent));
  assert.deepEqual(await findings(), []);
  assert.equal(await page.locator("#mend").isVisible(), false);
  const mass = () => page.evaluate(() => window.supple.scene.bodies.find((body) => body.name === "dust").mass);
  assert.ok((await mass()) > 0.1, `${await mass()} kg`);
  await until(page, () => window.supple.frame?.step > 20);
  await page.locator("#undo").click();
  await until(page, () => /[1-9]\d* problems? found/.test(document.getElementById("doctor").textContent));
  assert.ok((await mass()) < 1e-6, `${await mass()} kg`);
  assert.deepEqual(page.problems, []);
});
