// Who gets in: the person with the printed address, and nobody else; and what counts as saved.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse, serve, until, visit } from "./browser.mjs";

const journals = mkdtempSync(join(tmpdir(), "supple-door-"));
let browser;
let context;
let studio;
let page;
let foreign;
const port = () => new URL(studio.address).port;
const key = () => new URL(studio.printed).searchParams.get("key");
const kept = () => readdirSync(journals).filter((name) => name.endsWith(".journal"));

before(async () => {
  // A name of another site that its owner lets point at this machine.
  browser = await browse(["--host-resolver-rules=MAP rebound.example 127.0.0.1"]);
  context = await browser.newContext({ viewport: { width: 1280, height: 720 } });
  studio = await serve("pendulum", journals);
  page = await visit(await context.newPage(), `${studio.address}?noaa&noshadow`);
  foreign = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end("<!doctype html><title>Another site</title>");
  });
  await new Promise((done) => foreign.listen(0, "127.0.0.1", done));
});
after(async () => {
  await browser?.close();
  foreign?.close();
  studio?.stop();
});

test("the key is gone from the address, and no script can read the cookie", async () => {
  assert.equal(page.url(), `${studio.address}?noaa&noshadow`);
  const [cookie] = await context.cookies();
  assert.deepEqual(
    [cookie.name, cookie.value, cookie.httpOnly, cookie.sameSite],
    [`supple-${port()}`, key(), true, "Strict"],
  );
  assert.equal(await page.evaluate(() => document.cookie), "");
  assert.equal(await page.locator("#locked").isVisible(), false);
});

test("a foreign page with img, fetch, form, frame and WebSocket is refused and changes nothing", async () => {
  await page.locator("#view").focus();
  await page.keyboard.press("Space");
  await until(page, () => !window.supple.frame.playing && !window.supple.status.playing);
  await page.locator("#take-name").fill("mine");
  await page.keyboard.press("Enter");
  await until(page, () => window.supple.status.unsaved && window.supple.status.takes[0].name === "mine");
  const state = () => page.evaluate(() => ({ ...window.supple.status, step: window.supple.frame.step, scene: window.supple.scene.generation }));
  const before = await state();
  const home = `http://127.0.0.1:${port()}`;
  const there = foreign.address().port;
  // Another port of this machine is the same site, to which cookies go along; `localhost` is another site.
  for (const site of [`http://127.0.0.1:${there}/`, `http://localhost:${there}/`]) {
    const other = await context.newPage();
    // The browser hides most answers from the page; its debugger sees them all.
    const [asked, statuses] = [new Map(), []];
    const debug = await context.newCDPSession(other);
    debug.on("Network.requestWillBeSent", ({ requestId, request }) => asked.set(requestId, request.url));
    debug.on("Network.webSocketCreated", ({ requestId, url }) => asked.set(requestId, url));
    debug.on("Network.responseReceivedExtraInfo", ({ requestId, statusCode }) => statuses.push([requestId, statusCode]));
    await debug.send("Network.enable");
    await other.goto(site);
    const outcome = await other.evaluate(async (home) => {
      const settled = (promise) => promise.then((x) => x, (error) => String(error));
      const image = (path) => new Promise((done) => {
        const made = document.createElement("img");
        made.onload = () => done("shown");
        made.onerror = () => done("refused");
        made.src = home + path;
        document.body.append(made);
      });
      const frame = () => new Promise((done) => {
        const made = document.createElement("iframe");
        made.name = "inside";
        made.onload = () => done("loaded");
        document.body.append(made);
      });
      const socket = () => new Promise((done) => {
        const made = new WebSocket(home.replace("http", "ws") + "/socket");
        made.onopen = () => { made.send(JSON.stringify({ type: "open", scene: "hand" })); done("open"); };
        made.onerror = () => done("refused");
      });
      const form = () => new Promise((done) => {
        const inside = document.querySelector("iframe");
        inside.onload = () => done("answered");
        const made = document.createElement("form");
        Object.assign(made, { action: home + "/take", method: "post", target: "inside", enctype: "text/plain" });
        made.innerHTML = '<input name="x" value="y">';
        document.body.append(made);
        made.submit();
      });
      const told = {
        images: [await image("/take"), await image("/baked.glb")],
        plain: await settled(fetch(home + "/take").then((answer) => answer.status)),
        opaque: await settled(fetch(home + "/take", { mode: "no-cors", credentials: "include" }).then((answer) => answer.type)),
        post: await settled(fetch(home + "/take", { method: "POST", mode: "no-cors", credentials: "include", body: "x" }).then((answer) => answer.type)),
        socket: await socket(),
      };
      await frame();
      told.form = await form();
      return told;
    }, home);
    assert.deepEqual(outcome.images, ["refused", "refused"]);
    assert.match(String(outcome.plain), /TypeError/);
    assert.equal(outcome.socket, "refused");
    const answers = statuses.map(([id, status]) => [asked.get(id), status]).filter(([url]) => url?.includes(`:${port()}/`));
    assert.ok(answers.length >= 5, JSON.stringify(answers));
    assert.deepEqual(answers.filter(([, status]) => status !== 403), [], site);
    // A link on it leads nowhere either.
    await other.setContent(`<a href="${home}/take">takes</a>`);
    const [answer] = await Promise.all([other.waitForResponse(`${home}/take`), other.locator("a").click()]);
    assert.equal(answer.status(), 403);
    await other.close();
  }
  assert.deepEqual(await state(), before);
});

test("a name that was made to point here is refused", async () => {
  const other = await context.newPage();
  for (const path of ["/", "/take", `/?key=${key()}`, `/take?key=${key()}`]) {
    const answer = await other.goto(`http://rebound.example:${port()}${path}`);
    assert.equal(answer.status(), 403, path);
  }
  await other.close();
});

test("without the key there is a page that says so, and no data", async () => {
  const stranger = await browser.newContext();
  const other = await stranger.newPage();
  await other.goto(studio.address);
  await other.locator("#locked").waitFor({ state: "visible" });
  assert.match(await other.locator("#locked").textContent(), /supple refused this page: .*open the address that supple printed/);
  for (const path of ["take", "baked.glb", "rig.toml", "compare/0/0", "socket"]) {
    assert.equal(await other.evaluate(async (path) => (await fetch(path)).status, path), 403, path);
  }
  assert.equal(await other.evaluate(async () => (await fetch("saved", { method: "POST", body: "{}" })).status), 403);
  assert.equal(await other.evaluate(() => window.supple.frame), null);
  await stranger.close();
});

test("a download that is cut does not count as saved", async () => {
  const save = page.locator("#save-take");
  assert.match(await save.getAttribute("class"), /unsaved/);
  // The connection breaks; half of it comes and nobody says that it is half.
  await page.route("**/take", (route) => route.abort());
  await save.click();
  await page.locator(".notice.error", { hasText: "did not come whole" }).waitFor();
  await page.unroute("**/take");
  await page.route("**/take", async (route) => {
    const answer = await route.fetch();
    const body = await answer.body();
    await route.fulfill({ response: answer, body: body.subarray(0, body.length / 2), headers: { "x-take-id": answer.headers()["x-take-id"] } });
  });
  await save.click();
  await page.locator(".notice.error", { hasText: "not the takes that were sent" }).waitFor();
  await page.unroute("**/take");
  // A program reads a part of it and goes away.
  await new Promise((done) => {
    const socket = connect(Number(port()), "127.0.0.1", () => {
      socket.write(`GET /take HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nAuthorization: Bearer ${key()}\r\n\r\n`);
    });
    socket.once("data", () => socket.destroy());
    socket.once("close", done);
  });
  assert.equal(await page.evaluate(() => window.supple.status.unsaved), true);
  assert.equal(await studio.interrupt(), 0);
  assert.equal(kept().length, 1, "the journal is kept");
});

test("a whole one does, and leaves nothing behind", async () => {
  studio = await serve("pendulum", journals);
  page = await visit(await context.newPage(), `${studio.address}?noaa&noshadow`);
  await page.locator(".offer").getByRole("button", { name: "in place" }).click();
  await until(page, () => window.supple.status.takes[0].name === "mine" && window.supple.status.unsaved);
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save-take").click()]);
  assert.equal(download.suggestedFilename(), "pendulum.take");
  await until(page, () => !window.supple.status.unsaved);
  assert.equal(await studio.interrupt(), 0);
  assert.deepEqual(kept(), []);
});

test("a journal that cannot be written is told for as long as that lasts", async () => {
  const folder = join(journals, "folder");
  studio = await serve("pendulum", folder);
  page = await visit(await context.newPage(), `${studio.address}?noaa&noshadow`);
  const trouble = page.locator("#journal-trouble");
  assert.equal(await trouble.isVisible(), false);
  // A file lies where the folder was: nothing can be written there.
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "");
  await page.locator("#take-name").fill("mine");
  await page.keyboard.press("Enter");
  await trouble.waitFor({ state: "visible" });
  assert.match(await trouble.textContent(), /The journal cannot be written: .*Save what you want to keep/);
  await page.locator(".notice.error", { hasText: "keeps trying" }).waitFor();
  rmSync(folder);
  await trouble.waitFor({ state: "hidden" });
  assert.equal(readdirSync(folder).filter((name) => name.endsWith(".journal")).length, 1);
  assert.equal(await studio.interrupt(), 0);
});
