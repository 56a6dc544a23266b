// Everyone can use it: names of controls, keyboard, touch, less motion, contrast, small windows.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, drawn, placeOf, serve, steps, until, visit } from "./browser.mjs";

let browser;
let studio;
const cheap = () => `${studio.address}?noaa&noshadow`;

before(async () => {
  browser = await browse();
  studio = await serve("hand");
});
after(async () => {
  await browser?.close();
  studio?.stop();
});

/** Selectors of what a keyboard must reach, as far as it is shown. */
const CONTROLS = "a[href], button:not(:disabled), select, input:not(:disabled), summary, [tabindex='0']";

test("every control has a name and takes the focus", async () => {
  const page = await visit(browser, cheap());
  await page.locator("#body").selectOption({ label: "index_middle" });
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  const roles = ["button", "slider", "checkbox", "combobox", "textbox", "link", "DisclosureTriangle", "application"];
  const controls = nodes.filter((node) => !node.ignored && roles.includes(node.role?.value));
  assert.ok(controls.length > 35, `${controls.length} controls`);
  for (const node of controls) {
    const name = node.name?.value?.trim();
    const of = Object.fromEntries((node.properties ?? []).map(({ name, value }) => [name, value.value]));
    assert.ok(name, `a ${node.role.value} has no name: ${JSON.stringify(node)}`);
    assert.ok(of.focusable || of.disabled, `${node.role.value} "${name}" cannot be focused`);
  }
  await page.close();
});

test("Tab goes through every control", async () => {
  const page = await visit(browser, cheap());
  await page.locator("#body").selectOption({ label: "index_middle" });
  await page.keyboard.press("Space"); // a select has the focus: nothing happens
  const wanted = await page.evaluate((selector) => {
    const shown = [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility() && !e.closest("dialog:not([open])"));
    shown.forEach((e, k) => (e.dataset.number = String(k)));
    document.activeElement.blur();
    return shown.length;
  }, CONTROLS);
  const reached = new Set();
  for (let k = 0; k < wanted + 5; k++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement?.dataset.number));
  }
  const missed = await page.evaluate(
    (seen) => [...document.querySelectorAll("[data-number]")].filter((e) => !seen.includes(e.dataset.number)).map((e) => e.outerHTML.slice(0, 80)),
    [...reached],
  );
  assert.deepEqual(missed, []);
  await page.close();
});

for (const colorScheme of ["light", "dark"]) {
  test(`words stand out from what they stand on: ${colorScheme}`, async () => {
    const page = await visit(browser, cheap(), { colorScheme });
    await page.locator("#body").selectOption({ label: "index_middle" });
    const faint = await page.evaluate(() => {
      const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
      const light = (colour) => {
        const [r, g, b] = numbers(colour).map((c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = (element) => {
        for (let e = element; e; e = e.parentElement) {
          const colour = getComputedStyle(e).backgroundColor;
          if ((numbers(colour)[3] ?? 1) > 0.8) return colour;
        }
        return "rgb(255, 255, 255)";
      };
      const found = [];
      for (const e of document.querySelectorAll("body *")) {
        const words = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
        if (!words || !e.checkVisibility() || e.matches(":disabled") || e.closest(":disabled")) continue;
        const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push(`${e.tagName} "${e.textContent.trim().slice(0, 30)}": ${ratio.toFixed(2)}`); // WCAG AA
      }
      return found;
    });
    assert.deepEqual(faint, []);
    await page.close();
  });
}

test("a finger pulls a body, and beside it turns the camera", async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, hasTouch: true });
  const page = await visit(context, cheap());
  await page.locator("#view").focus();
  if (await page.evaluate(() => window.supple.status.playing)) await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  const session = await context.newCDPSession(page);
  const touch = (type, ...points) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  const palm = () => placeOf(page, "palm");
  const [x, y] = await palm();
  await touch("touchStart", [x, y]);
  for (let k = 1; k <= 5; k++) await touch("touchMove", [x - 30 * k, y]);
  await until(page, () => window.supple.frame.drags.some((drag) => drag.puller === 1));
  await steps(page, 20);
  await until(page, (x) => window.supple.screenOf(window.supple.bodyOf("palm"))[0] < x - 10, x);
  await touch("touchEnd");
  await until(page, () => !window.supple.frame.drags.some((drag) => drag.puller === 1));
  assert.equal(await page.locator("#body option:checked").textContent(), "palm");

  const before = await palm();
  await touch("touchStart", [60, 500]);
  for (let k = 1; k <= 5; k++) await touch("touchMove", [60 + 30 * k, 500]);
  await touch("touchEnd");
  await until(page, ([x]) => Math.abs(window.supple.screenOf(window.supple.bodyOf("palm"))[0] - x) > 5, before);
  assert.deepEqual(page.problems, []);
  await context.close();
});

test("who asks for less motion meets a character at rest and a camera that does not glide", async () => {
  const own = await serve("hand");
  try {
    const page = await visit(browser, `${own.address}?noaa&noshadow`, { reducedMotion: "reduce" });
    await until(page, () => !window.supple.status.playing && !window.supple.frame.playing);
    await page.locator(".notice", { hasText: "less motion" }).waitFor();
    await page.locator("#view").focus();
    const place = () => page.evaluate(() => window.supple.screenOf(0));
    await drawn(page);
    const home = await place();
    await page.keyboard.press("ArrowLeft");
    await until(page, ([x]) => Math.abs(window.supple.screenOf(0)[0] - x) > 1, home);
    await page.keyboard.press("+");
    const camera = () => page.evaluate(() => window.supple.camera);
    const near = await camera();
    await page.keyboard.press("f");
    const framed = await camera();
    assert.notDeepEqual(framed, near);
    await drawn(page);
    assert.deepEqual(await camera(), framed, "it is there at once");
    const moving = await page.evaluate(() =>
      [...document.querySelectorAll("*")].filter((e) => {
        const style = getComputedStyle(e);
        return style.animationName !== "none" || style.transitionDuration.split(",").some((s) => parseFloat(s) > 0);
      }).length,
    );
    assert.equal(moving, 0);
    await page.keyboard.press("Space");
    await until(page, () => window.supple.frame.playing);
    await page.close();
  } finally {
    own.stop();
  }
});

test("a newcomer meets twelve controls at most and one hint, which goes once it was followed", async () => {
  const page = await visit(browser, cheap(), { folded: true });
  const shown = () =>
    page.evaluate(() => {
      const controls = document.querySelectorAll(".panel :is(a[href], button, select, input)");
      return [...controls].filter((e) => e.checkVisibility()).map((e) => e.id || e.textContent);
    });
  const controls = await shown();
  assert.ok(controls.length > 5 && controls.length <= 12, `${controls.length}: ${controls}`);
  const fits = await page.evaluate(() => document.querySelector(".panel").scrollHeight <= document.querySelector(".panel").clientHeight);
  assert.ok(fits, "nothing is to be scrolled for");
  assert.equal(await page.locator("#hint").textContent(), "Drag a limb. Space plays. L lets it go.");
  assert.ok(await page.locator("#hint").isVisible());
  await page.locator("#view").focus();
  await page.keyboard.press("l");
  await until(page, () => window.supple.status.tones.bodies.every((state) => state === "loose"));
  assert.ok(await page.locator("#hint").isHidden());
  await page.keyboard.press("l");
  await until(page, () => window.supple.status.tones.bodies.every((state) => state === "scene"));
  await page.locator("#tree > summary").click();
  await page.locator("#bone-tree button", { hasText: "index_middle" }).click();
  assert.equal(await page.locator("#body option:checked").textContent(), "index_middle");
  await page.close();
});

for (const [width, height] of [[1280, 720], [1024, 640], [700, 900]]) {
  test(`everything is within reach at ${width} × ${height}`, async () => {
    const page = await visit(browser, cheap(), { viewport: { width, height } });
    await page.locator("#body").selectOption({ label: "index_middle" });
    const outside = await page.evaluate((selector) => {
      const shown = [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility() && !e.closest("dialog"));
      return shown.filter((e) => {
        e.scrollIntoView({ block: "nearest" });
        const box = e.getBoundingClientRect();
        return box.left < 0 || box.right > innerWidth + 0.5 || box.top < 0 || box.bottom > innerHeight + 0.5;
      }).map((e) => e.outerHTML.slice(0, 80));
    }, CONTROLS);
    assert.deepEqual(outside, []);
    const picture = await page.locator("#view").boundingBox();
    assert.ok(picture.height > 0.35 * height, `the picture is ${picture.height} px high`);
    await page.close();
  });
}

test("a file of another kind is refused with words", async () => {
  const page = await visit(browser, cheap());
  await page.evaluate(() => {
    const files = new DataTransfer();
    files.items.add(new File(["Kaydara"], "dancer.blend"));
    const event = (kind) => new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true });
    document.body.dispatchEvent(event("dragover"));
    if (document.getElementById("veil").hidden) throw new Error("nothing says that a file may be dropped");
    document.body.dispatchEvent(event("drop"));
  });
  await page.locator(".notice.error", { hasText: "dancer.blend cannot be opened: drop a character" }).waitFor();
  assert.ok(await page.locator("#veil").isHidden());
  await page.close();
});

test("the guide opens from the page", async () => {
  const page = await visit(browser, cheap());
  const [guide] = await Promise.all([page.context().waitForEvent("page"), page.getByRole("link", { name: "Guide" }).first().click()]);
  await guide.waitForLoadState();
  assert.equal(await guide.locator("h1").textContent(), "The studio");
  const broken = await guide.evaluate(() => [...document.images].filter((image) => image.naturalWidth === 0).map((image) => image.src));
  assert.deepEqual(broken, []);
  await guide.close();
  await page.close();
});

test("two tabs see the same", async () => {
  const [one, two] = [await visit(browser, cheap()), await visit(browser, cheap())];
  await one.locator("#view").focus();
  if (await one.evaluate(() => window.supple.status.playing)) await one.keyboard.press("Space");
  for (const page of [one, two]) await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  const step = await one.evaluate(() => window.supple.frame.step);
  await one.keyboard.press(".");
  const poses = async (page) => {
    await until(page, (step) => window.supple.frame.step === step + 1, step);
    return page.evaluate(() => [...window.supple.frame.poses]);
  };
  assert.deepEqual(await poses(one), await poses(two));
  await one.close();
  await two.close();
});
