// What the browser tests and the pictures share: the built binary, and a Chromium that draws without a graphics card.
//
// SUPPLE names the binary (default: target/release/supple of this repository), CHROMIUM the browser. PAGE names a folder with the page as `npm run build` makes it (dist), to be
// shown instead of the one in the binary: what changed in the page alone is tried without building that.

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** How long anything may take [ms]: pictures drawn without a graphics card on a busy machine take long. */
const PATIENCE = Number(process.env.PATIENCE ?? 90_000);
const built = fileURLToPath(new URL("../../../../target/release/supple", import.meta.url));
export const binary = process.env.SUPPLE ?? built;

/** By host, the addresses that studios printed, with their keys. */
const printed = new Map();

/** Starts `supple view SCENE`, or `supple view`, at a free port; without a journal, unless a folder for it is given. `address` is without the key, which `visit` adds. */
export async function serve(scene, journal = null, words = []) {
  if (!existsSync(binary)) throw new Error(`${binary} is missing: build it with cargo build --release, or set SUPPLE`);
  const keep = journal ? ["--journal", journal] : ["--no-journal"];
  const call = ["view", ...(scene === null ? [] : [scene]), "--no-open", "--port", "0", ...keep, ...words];
  const child = spawn(binary, call, { stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`supple ended with ${code}`)));
    child.stdout.once("data", (data) => resolve(String(data).trim()));
  });
  /** Ends it as Ctrl-C does, or at once, as a crash would. */
  const end = (signal) =>
    new Promise((resolve) => {
      child.once("exit", resolve);
      child.kill(signal);
    });
  const { host, origin } = new URL(line);
  printed.set(host, line);
  return { address: `${origin}/`, printed: line, process: child.pid, stop: () => child.kill(), interrupt: () => end("SIGINT"), crash: () => end("SIGKILL") };
}

export async function browse(words = []) {
  const paths = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const executablePath = paths.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error("no Chromium found: install it, or set CHROMIUM");
  // A page that comes from the tests is of no network, and may not talk to this machine otherwise.
  const replaced = process.env.PAGE ? ["--disable-features=LocalNetworkAccessChecks"] : [];
  return chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage", ...replaced, ...words],
  });
}

/** Opens the page, in a tab of its own or in one that is there, and waits until a frame is drawn. All of its parts are unfolded, unless it is to be as a
 * newcomer finds it. */
export async function visit(browser, address, { folded = false, ...options } = {}) {
  const page = browser.newPage ? await browser.newPage({ viewport: { width: 1280, height: 720 }, ...options }) : browser;
  page.setDefaultTimeout(PATIENCE);
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") page.problems.push(`${message.text()} ${message.location().url}`.trim());
  });
  const { host, search } = new URL(address);
  if (process.env.PAGE) {
    // What the key is changed for comes by a redirection, which is not routed.
    if (printed.has(host)) await page.request.get(printed.get(host));
    await page.route((url) => isBuilt(url), replace);
    await page.goto(address);
  } else await page.goto(printed.has(host) ? printed.get(host) + search.replace("?", "&") : address);
  await until(page, () => window.supple?.frame && window.supple.frames > 0);
  if (!folded) await page.evaluate(unfold);
  return page;
}

/** Whether a request is for the page itself, which PAGE has. */
const isBuilt = ({ pathname }) => pathname === "/" || existsSync(join(process.env.PAGE, pathname));
/** Answers a request of the page from the folder PAGE. */
async function replace(route) {
  const path = new URL(route.request().url()).pathname;
  const kinds = { ".js": "text/javascript", ".css": "text/css", ".jpg": "image/jpeg", ".wasm": "application/wasm" };
  if (path !== "/") return route.fulfill({ body: readFileSync(join(process.env.PAGE, path)), contentType: kinds[extname(path)] });
  return route.fulfill({ body: readFileSync(join(process.env.PAGE, "index.html")), contentType: "text/html" });
}

/** In the page: opens what is folded and shows the instruments. */
function unfold() {
  for (const part of document.querySelectorAll(".panel details")) part.open = true;
  const instruments = document.getElementById("instruments-button");
  if (instruments.getAttribute("aria-expanded") === "false" && innerHeight >= 560) instruments.click();
}

/** Waits until what the page knows by now is drawn, and what hands did by now is sent: it does both once a drawn frame. Whatever is asked of the picture (`screenOf`,
 * `marks`, words beside the slider of time) comes after this, and so does a step that is to follow a move of the mouse. */
export async function drawn(page) {
  await until(page, () => !window.supple.glides);
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Goes to a step by the slider of time, which grows with what is drawn and is sent with what is drawn. */
export async function goTo(page, step) {
  await until(page, (step) => Number(document.getElementById("time").max) >= step, step);
  await page.locator("#time").fill(String(step));
  await drawn(page);
  await until(page, (step) => window.supple.frame.step === step, step);
  await drawn(page);
}

/** Does steps by the keyboard, after what hands did before. */
export async function steps(page, count) {
  await drawn(page);
  const step = await page.evaluate(() => window.supple.frame.step);
  for (let k = 0; k < count; k++) await page.keyboard.press(".");
  await until(page, (step) => window.supple.frame.step === step, step + count);
  await drawn(page);
}

/** Where a body is in the window, as drawn by now. */
export async function placeOf(page, name) {
  await drawn(page);
  return page.evaluate((name) => window.supple.screenOf(window.supple.bodyOf(name)), name);
}

/** Waits until something holds in the page. */
export function until(page, holds, argument) {
  return page.waitForFunction(holds, argument, { timeout: PATIENCE, polling: 50 });
}

/** The folder of models made by others, and why tests that read it are skipped; in CI none may be. */
export const assets = process.env.SUPPLE_ASSETS;
export const skip = assets ? false : "SUPPLE_ASSETS names no folder";
if (skip && process.env.SUPPLE_REQUIRE_ASSETS) throw new Error(skip);

/** A studio with a scene, and a browser with its page, ready; paused when that is asked for. `close` ends all of it. */
export async function open(scene, { paused = false } = {}) {
  const studio = await serve(scene);
  const browser = await browse();
  const page = await visit(browser, `${studio.address}?noaa&noshadow`);
  await until(page, () => window.supple.ready);
  if (paused) {
    await page.locator("#view").focus();
    if (await page.evaluate(() => window.supple.status.playing)) await page.keyboard.press(" ");
    await until(page, () => !window.supple.frame.playing);
  }
  const close = async () => {
    await browser.close();
    studio.stop();
  };
  const shot = async (name) => {
    if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, name) });
  };
  return { studio, browser, page, close, shot };
}
