// The table of the guide: every character of a folder as the studio draws it, in its own materials, with its bones, its mass and what was noticed.
//
//   SUPPLE_ASSETS=FOLDER node tests/table.mjs
//
// writes docs/guide/characters-table.md and its pictures in docs/guide/pictures/characters/. Files without bones are left out.

import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { basename, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { browse, drawn, serve, until, visit } from "./browser.mjs";

const folder = process.env.SUPPLE_ASSETS;
if (!folder) throw new Error("SUPPLE_ASSETS names no folder of characters");
const guide = fileURLToPath(new URL("../../../../docs/guide/", import.meta.url));
const pictures = join(guide, "pictures/characters");
mkdirSync(pictures, { recursive: true });

const found = [];
const walk = (path) => {
  for (const name of readdirSync(path).sort()) {
    const inner = join(path, name);
    if (statSync(inner).isDirectory()) walk(inner);
    else if ([".glb", ".gltf", ".vrm", ".fbx"].includes(extname(name).toLowerCase())) found.push(inner);
  }
};
walk(folder);

const rows = [];
const browser = await browse();
for (const path of found) {
  const file = relative(folder, path);
  let studio;
  try {
    studio = await serve(path);
  } catch {
    console.error(`${file}: not opened`);
    continue;
  }
  const page = await visit(browser, `${studio.address}?noaa`, { viewport: { width: 900, height: 700 } });
  await until(page, () => window.supple.ready && window.supple.frame?.step > 5);
  const { rig, bodies, clips, notes } = await page.evaluate(() => window.supple.scene);
  if (rig) {
    await page.keyboard.press("Space");
    await drawn(page);
    // A file's own name may be that of another in another folder.
    const picture = `${file.replaceAll("/", "-").replaceAll(".", "-")}.jpg`;
    const hide = ".label, .hint, #hint, #toasts, .notice, .views, #views { visibility: hidden !important; }";
    await page.addStyleTag({ content: hide });
    const box = await page.locator("canvas").first().boundingBox();
    const side = Math.min(box.width, box.height);
    const clip = { x: box.x + (box.width - side) / 2, y: box.y + (box.height - side) / 2, width: side, height: side };
    await page.screenshot({ path: join(pictures, picture), type: "jpeg", quality: 70, clip });
    const kinds = new Map();
    for (const note of notes) kinds.set(note.code, (kinds.get(note.code) ?? 0) + 1);
    const told = [...kinds].map(([code, count]) => (count > 1 ? `${code.replace("import/", "")} (${count})` : code.replace("import/", "")));
    const number = (x) => String(Number(x.toPrecision(3)));
    rows.push(`| ![${basename(file)}](pictures/characters/${picture}) | \`${file}\` | ${bodies.length} | ${clips.length} | ${number(rig.height)} m | ${number(rig.mass)} kg | ${told.join(", ") || "none"} |`);
    console.log(file, bodies.length, rig.height, rig.mass);
  }
  await page.close();
  await studio.interrupt();
}
await browser.close();

writeFileSync(
  join(guide, "characters-table.md"),
  `# Characters made by others

Made by \`SUPPLE_ASSETS=FOLDER node tests/table.mjs\` in \`crates/supple-studio/web\`: each file as the studio draws it, in its own materials, held in its pose. Notes are codes of
[docs/errors.md](../errors.md) without \`import/\`, with how often each came up; \`supple inspect FILE\` tells them in full.

| | file | bones | clips | height | mass | notes |
|---|---|---|---|---|---|---|
${rows.join("\n")}

The files shown: CesiumMan, RiggedFigure, RiggedSimple and RecursiveSkeletons by Cesium (CC BY 4.0; name and logo are trademarks of Cesium), mannequiny by GDQuest and contributors (CC BY 4.0), the platformer's robot by
Godot Engine contributors (MIT), the hand by Amazon, WebXR input profiles (MIT), SimpleSkin by Marco Hutter (CC0), the pug by Quaternius (CC0), the rogue by Kay Lousberg (CC0), the avatar by Isamu Mogi, the FBX files by Samuli
Raivio (MIT) and Kenney (CC0).
`,
);
process.exit(0);
