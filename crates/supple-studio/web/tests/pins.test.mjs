// Pins: exact, by place alone or with the orientation, with a mark in the picture that is dragged and leads the limb along; undone as one.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assets, drawn, open, skip, steps, until } from "./browser.mjs";

let opened, page;
/** The body that is farthest from the middle: a hand. */
let hand;
before(async () => {
  if (skip) return;
  opened = await open(join(assets, "gltf", "CesiumMan.glb"), { paused: true });
  page = opened.page;
  hand = await page.evaluate(() => {
    const { poses } = window.supple.frame;
    const away = Array.from({ length: poses.length / 7 }, (_, k) => Math.abs(poses[7 * k]));
    return away.indexOf(Math.max(...away));
  });
  await page.locator("#body").selectOption(String(hand));
});
after(() => opened?.close());

/** Place and orientation of the hand. */
const pose = () => page.evaluate((hand) => [...window.supple.frame.poses.slice(7 * hand, 7 * hand + 7)], hand);
const apart = (a, b) => Math.hypot(...a.slice(0, 3).map((x, k) => x - b[k]));
const turned = (a, b) => 2 * Math.acos(Math.min(1, Math.abs(a[3] * b[3] + a[4] * b[4] + a[5] * b[5] + a[6] * b[6])));
const press = async (key) => {
  await page.locator("#view").focus();
  await page.keyboard.press(key);
};

test("a pin holds the place to rounding, and with the orientation that too", { skip }, async () => {
  await press("p");
  await until(page, (hand) => window.supple.status.pins[0] === hand && window.supple.pins.length === 1, hand);
  const start = await pose();
  await press("l");
  await steps(page, 60);
  const hanging = await pose();
  // Places come as single precision.
  assert.ok(apart(start, hanging) < 1e-5, `${apart(start, hanging)} m`);
  assert.ok(turned(start, hanging) > 0.2, `${turned(start, hanging)} rad: by its place alone it turns`);
  await page.locator("#pin-turn").check();
  await until(page, () => window.supple.status.pin_turns[0] === true);
  const before = await pose();
  await press("l");
  await steps(page, 60);
  const after = await pose();
  assert.ok(apart(before, after) < 1e-5 && turned(before, after) < 2e-3, `${apart(before, after)} m, ${turned(before, after)} rad`);
  await opened.shot("pinned.png");
});

test("its mark is dragged, and the limb goes along; one undo takes it back", { skip }, async () => {
  await drawn(page);
  const [{ at, place }] = await page.evaluate(() => window.supple.pins);
  const box = await page.locator("#view").boundingBox();
  await page.mouse.move(box.x + at[0], box.y + at[1]);
  await page.mouse.down();
  await page.mouse.move(box.x + at[0] - 20, box.y + at[1] - 30, { steps: 5 });
  await drawn(page);
  await page.mouse.up();
  await until(page, (y) => window.supple.status.pin_places[0][1] > y + 0.02, place[1]);
  const asked = await page.evaluate(() => window.supple.status.pin_places[0]);
  await steps(page, 60);
  const there = await pose();
  assert.ok(apart(there, asked) < 1e-5, `${apart(there, asked)} m from where the mark is`);
  await opened.shot("pin-dragged.png");
  assert.match(await page.evaluate(() => window.supple.status.undo), /^(move pin|the new)/);
  await page.locator("#undo").click();
  await until(page, (y) => Math.abs(window.supple.status.pin_places[0][1] - y) < 1e-6, place[1]);
  await press("p");
  await until(page, () => window.supple.status.pins.length === 0 && window.supple.pins.length === 0);
  assert.deepEqual(page.problems, []);
});
