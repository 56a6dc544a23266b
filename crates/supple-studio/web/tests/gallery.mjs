// Pictures of the start page: node tests/gallery.mjs [NAME…]
//
// Eight moments of every built-in scene side by side, drawn by `supple render`, made small by the browser: public/gallery/NAME.jpg, and NAME-dark.jpg for those who have their screen
// dark.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { binary, browse } from "./browser.mjs";

const FRAMES = 8;
const [WIDTH, HEIGHT] = [240, 160];
const folder = join(dirname(fileURLToPath(import.meta.url)), "../public/gallery");
const scratch = mkdtempSync(join(tmpdir(), "supple-gallery-"));
mkdirSync(folder, { recursive: true });
const all = JSON.parse(execFileSync(binary, ["scenes", "--json"], { encoding: "utf8" })).scenes.map(({ name }) => name);
const asked = process.argv.slice(2);
const browser = await browse();
const page = await browser.newPage();
for (const name of asked.length ? asked : all) {
  for (const background of ["light", "dark"]) {
    const strip = join(scratch, `${name}.png`);
    const moments = ["--strip", String(FRAMES), "--from", "0", "--to", "2", "--size", `${FRAMES * WIDTH}x${HEIGHT}`];
    execFileSync(binary, ["--quiet", "render", name, "-o", strip, "--background", background, ...moments]);
    const jpeg = await page.evaluate(async (png) => {
      const image = new Image();
      image.src = `data:image/png;base64,${png}`;
      await image.decode();
      const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
      canvas.getContext("2d").drawImage(image, 0, 0);
      return canvas.toDataURL("image/jpeg", 0.72).split(",")[1];
    }, readFileSync(strip).toString("base64"));
    const bytes = Buffer.from(jpeg, "base64");
    writeFileSync(join(folder, `${name}${background === "dark" ? "-dark" : ""}.jpg`), bytes);
    console.log(name, background, bytes.length);
  }
}
await browser.close();
rmSync(scratch, { recursive: true, force: true });
