// Takes and journals of a figure that a file gave: saved, recovered after a crash, opened again; and told in words when the file is gone.

import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse, placeOf, serve, steps, until, visit } from "./browser.mjs";

const leg = `<mujoco><worldbody><body name="thigh" pos="0 0 1"><joint axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.05" mass="4"/>
  <body name="shin" pos="0.4 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04" mass="1"/></body>
</body></worldbody></mujoco>`;

const scratch = mkdtempSync(join(tmpdir(), "supple-files-"));
const [file, away, journals] = ["leg.xml", "away.xml", "journal"].map((name) => join(scratch, name));
let browser;
let studio;
let page;
let saved;

before(async () => {
  writeFileSync(file, leg);
  browser = await browse();
  studio = await serve(file, journals);
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

const shown = () => page.evaluate(() => ({ end: window.supple.frame.end, poses: [...window.supple.frame.poses], stored: window.supple.status.stored }));

test("a figure of a file is pulled, and its takes saved", async () => {
  await until(page, () => window.supple.frame.step > 5);
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  const [x, y] = await placeOf(page, "shin");
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 40, y - 60, { steps: 3 });
  await steps(page, 20);
  await page.mouse.up();
  await until(page, () => window.supple.frame.drags.length === 0);
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save-take").click()]);
  saved = join(scratch, download.suggestedFilename());
  await download.saveAs(saved);
});

test("after a crash it is recovered, as the file has it", async () => {
  await page.locator("#take-name").fill("pulled");
  await page.keyboard.press("Enter");
  await until(page, () => window.supple.status.takes[0].name === "pulled");
  const before = await shown();
  await page.waitForTimeout(1500); // what is older than two seconds must be there; this is younger
  await studio.crash();
  await page.close();
  studio = await serve("pendulum", journals, ["--allow-dir", scratch]);
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
  const offer = page.locator(".offer");
  await offer.waitFor();
  assert.match(await offer.textContent(), /A session was cut short: leg\.xml, 1 take/);
  await offer.getByRole("button", { name: "in place" }).click();
  await until(page, () => window.supple.scene.name === "leg.xml" && window.supple.frame);
  assert.deepEqual(await shown(), before, "the last step, to the last bit, computed again");
  assert.equal(await page.evaluate(() => window.supple.status.takes[0].name), "pulled");
});

test("without its file a take is refused with words, with it it opens", async () => {
  renameSync(file, away);
  await page.locator("#load-take").setInputFiles(saved);
  const notice = page.locator(".notice.error", { hasText: "leg.xml" }).first();
  await notice.waitFor();
  assert.match(await notice.textContent(), /the takes were made with this file, and it is not there; put it back/);
  renameSync(away, file);
  const generation = await page.evaluate(() => window.supple.scene.generation);
  await page.locator("#load-take").setInputFiles(saved);
  await until(page, (before) => window.supple.scene.generation > before && window.supple.frame, generation);
  const { end, stored } = await shown();
  assert.ok(end > 25 && stored === null, `${end}, ${stored}`);
  assert.deepEqual(page.problems.filter((text) => !/400/.test(text)), []);
});
