// Takes as a person meets them: going back, forking, comparing, deleting and undoing, saving, and recovering after a crash.
// PICTURES names a folder for a picture of each; otherwise they go to a temporary one.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse, drawn, goTo, placeOf, serve, steps, until, visit } from "./browser.mjs";

let browser;
let studio;
let page;
const folder = mkdtempSync(join(tmpdir(), "supple-takes-"));
const journals = join(folder, "journal");
const pictures = process.env.PICTURES ?? join(folder, "pictures");
mkdirSync(pictures, { recursive: true });
/** A picture of the page, after what it knows now has been drawn. */
const picture = async (name) => {
  await drawn(page);
  await page.screenshot({ path: join(pictures, `${name}.png`) });
};

before(async () => {
  browser = await browse();
  studio = await serve("robot", journals);
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

const press = (key) => page.keyboard.press(key);
const step = (step) => until(page, (step) => window.supple.frame.step === step, step);

/** Pulls a body by the mouse while paused, and does steps meanwhile. */
async function pull(name, [dx, dy], count) {
  const [x, y] = await placeOf(page, name);
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + dx, y + dy, { steps: 4 });
  await until(page, () => window.supple.frame.drags.some((d) => d.puller === 1));
  await steps(page, count);
  await page.mouse.up();
}

test("scrubbing goes back", async () => {
  await until(page, () => window.supple.frame.step > 130);
  await press("Space");
  await until(page, () => !window.supple.frame.playing);
  await goTo(page, 60);
  await until(page, () => document.getElementById("mode").textContent === "recorded");
  await picture("1-scrubbed-back");
});

test("a pull from there begins another take", async () => {
  await pull("right_hand", [-110, -130], 45);
  const status = await page.evaluate(() => window.supple.status);
  assert.deepEqual([status.take, status.takes.length, status.takes[1].first], [1, 2, 60]);
  assert.equal(status.undo, "the new take 2");
  assert.equal(await page.locator("[data-take]").count(), 2);
  await picture("2-forked");
});

test("the other take is overlaid, and the joints that differ most are named", async () => {
  await drawn(page);
  const before = await page.screenshot({ clip: await page.locator("#view").boundingBox() });
  await page.locator("[data-compare='0']").click();
  await until(page, () => window.supple.status.compare === 0 && window.supple.frame.other && window.supple.comparison);
  await page.locator("#comparison").waitFor({ state: "visible" });
  await page.locator("#comparison").scrollIntoViewIfNeeded();
  await drawn(page);
  const { comparison, frame } = await page.evaluate(() => {
    const { comparison, frame } = window.supple;
    return { comparison, frame: { poses: [...frame.poses], other: [...frame.other], step: frame.step } };
  });
  assert.deepEqual([comparison.first, comparison.last], [60, 105]);
  assert.match(comparison.angles[0].name, /^right_/);
  assert.ok(comparison.angles[0].largest > 0.3, `${comparison.angles[0].largest} rad`);
  assert.equal(frame.step, 105);
  assert.equal(frame.other.length, frame.poses.length);
  const names = await page.locator("#angle-joints li").allTextContents();
  assert.equal(names.length, 5);
  assert.ok(names[0].startsWith(comparison.angles[0].name), names[0]);
  assert.match(names[0], /°$/);
  // The plot has curves, and the picture shows the second figure: many pixels became more orange.
  const ink = await page.evaluate(() => {
    const canvas = document.getElementById("difference-angles");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.filter((value, k) => k % 4 === 3 && value > 0).length;
  });
  assert.ok(ink > 300, `${ink} pixels of the plot are drawn`);
  const now = await page.screenshot({ clip: await page.locator("#view").boundingBox() });
  const changed = await page.evaluate(
    async (shots) => {
      const [a, b] = await Promise.all(
        shots.map(async (data) => {
          const image = new Image();
          image.src = `data:image/png;base64,${data}`;
          await image.decode();
          const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
          pen.drawImage(image, 0, 0);
          return pen.getImageData(0, 0, image.width, image.height).data;
        }),
      );
      let count = 0;
      for (let k = 0; k < a.length; k += 4) if (b[k] - b[k + 2] > a[k] - a[k + 2] + 30) count++;
      return count;
    },
    [before.toString("base64"), now.toString("base64")],
  );
  assert.ok(changed > 500, `${changed} pixels became orange`);
  await picture("3-compared");
  // It follows the slider of time.
  await goTo(page, 80);
  await until(page, () => window.supple.frame.other);
  const other = await page.evaluate(() => [...window.supple.frame.other.slice(0, 7)]);
  assert.equal(other.length, 7);
});

test("a take is deleted, and Ctrl+Z brings it back", async () => {
  await page.locator("[data-delete='1']").click();
  await until(page, () => window.supple.status.takes[1] === null && window.supple.frame.take === 0);
  assert.equal(await page.locator("[data-take]").count(), 1);
  assert.equal(await page.locator("#undo").getAttribute("aria-label"), "Undo delete take 2 (Ctrl+Z)");
  await picture("4-deleted");
  await page.locator("#view").focus();
  await press("Control+z");
  await until(page, () => window.supple.status.takes[1]?.end === 105 && window.supple.frame.take === 1);
  await step(80); // where one was
  assert.equal(await page.locator("[data-take]").count(), 2);
  await press("Control+Shift+z");
  await until(page, () => window.supple.status.takes[1] === null);
  await press("Control+z");
  await until(page, () => window.supple.status.takes[1]);
  await picture("5-undone");
});

test("a moved slider is undone at once", async () => {
  const gravity = () => page.evaluate(() => window.supple.status.settings.gravity[1]);
  await page.locator("#view").focus();
  await press("End");
  await step(105);
  for (const g of ["8", "6", "3.7"]) await page.locator("#gravity").fill(g);
  await until(page, () => window.supple.status.undo === "gravity");
  await until(page, () => window.supple.status.settings.gravity[1] === -3.7);
  await page.locator("#undo").click();
  await until(page, () => window.supple.status.redo === "gravity");
  assert.equal(await gravity(), -9.81);
  assert.equal(await page.locator("#gravity").inputValue(), "9.81");
});

test("takes are saved and opened again; the scene before comes back by undoing", async () => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save-take").click()]);
  const path = join(folder, download.suggestedFilename());
  await download.saveAs(path);
  await page.locator("#scene").selectOption("pendulum");
  await until(page, () => window.supple.scene.name === "pendulum" && window.supple.status.undo === "open pendulum");
  await page.locator("#load-take").setInputFiles(path);
  await until(page, () => window.supple.scene.name === "robot" && window.supple.frame?.take === 1);
  const status = await page.evaluate(() => window.supple.status);
  assert.deepEqual(status.takes.map((take) => [take.first, take.end]), [[0, status.takes[0].end], [60, 105]]);
  assert.equal(status.stored, null, "the same build computes it again");
  await picture("6-opened-again");
  await page.locator("#view").focus();
  await press("Control+z");
  await until(page, () => window.supple.scene.name === "pendulum");
  await press("Control+Shift+z");
  await until(page, () => window.supple.scene.name === "robot" && window.supple.frame?.take === 1);
});

test("after a crash the page offers the session, and recovers it", async () => {
  await page.locator("#take-name").fill("the good one");
  await press("Enter");
  await page.locator("#view").focus();
  await press("Space");
  await until(page, () => window.supple.frame.end > 200);
  await press("Space");
  await until(page, () => !window.supple.frame.playing);
  const before = await page.evaluate(() => ({ end: window.supple.frame.end, poses: [...window.supple.frame.poses] }));
  await page.waitForTimeout(1500); // what is older than two seconds must be there; this is younger
  await studio.crash();
  studio = await serve("hand", journals);
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
  const offer = page.locator(".offer");
  await offer.waitFor();
  assert.match(await offer.textContent(), /A session was cut short: robot, 2 takes/);
  await picture("7-offered");
  await offer.getByRole("button", { name: "in place" }).click();
  await until(page, () => window.supple.scene.name === "robot" && window.supple.frame?.take === 1);
  const after = await page.evaluate(() => ({
    end: window.supple.frame.end,
    poses: [...window.supple.frame.poses],
    names: window.supple.status.takes.map((take) => take.name),
    offers: window.supple.status.journals.length,
  }));
  assert.equal(after.end, before.end);
  assert.deepEqual(after.poses, before.poses, "the last step, to the last bit");
  assert.deepEqual(after.names, ["take 1", "the good one"]);
  assert.equal(after.offers, 0);
  assert.equal(await page.locator(".offer").count(), 0);
  await picture("8-recovered");
});

test("a session can be discarded, and a clean end leaves nothing", async () => {
  await studio.crash();
  studio = await serve("hand", journals);
  page = await visit(browser, `${studio.address}?noaa&noshadow`);
  const discard = page.locator(".offer button").last();
  await discard.click();
  assert.equal(await discard.textContent(), "Discard for good");
  await discard.click();
  await until(page, () => window.supple.status.journals.length === 0);
  assert.equal(await page.locator(".offer").count(), 0);
  await studio.interrupt();
  assert.deepEqual(readdirSync(journals).filter((name) => name.endsWith(".journal")), []);
});

test("nothing went wrong in the page", () => {
  // That the last studio has ended is told; nothing else.
  assert.deepEqual(page.problems.filter((text) => !/WebSocket|ERR_CONNECTION/.test(text)), []);
});
