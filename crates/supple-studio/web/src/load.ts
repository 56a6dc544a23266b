// The character's own file, read by three's loaders from the very bytes that the session opened; of a file whose meshes are compressed, or that is no glTF, from
// the plain .glb that the server makes of it. Decoders of textures are part of the page and fetched from its own server, each only when a file needs it.

import type { WebGLRenderer } from "three";
import { GLTFLoader, type GLTF } from "three/addons/loaders/GLTFLoader.js";
import type { FileMessage } from "./protocol";

/** By place in the scene, the last file that was read: a changed bone makes the scene anew, but not its file. */
const last: { key: string; read: Promise<GLTF> }[] = [];

/** The file of the character at a place of the scene: 0 is its own, guests come after it. Each has nodes of its own. */
export function readFile(file: FileMessage, renderer: WebGLRenderer, place = 0): Promise<GLTF> {
  if (last[place]?.key !== file.key) last[place] = { key: file.key, read: read(file, renderer) };
  return last[place]!.read;
}

async function read({ key, name }: FileMessage, renderer: WebGLRenderer): Promise<GLTF> {
  const folder = `file/${key}/`;
  const answer = await fetch(folder + encodeURIComponent(name));
  if (!answer.ok) throw new Error(await answer.text());
  const bytes = await answer.arrayBuffer();
  const used = new Set(extensionsOf(bytes));
  const loader = new GLTFLoader();
  if (used.has("KHR_texture_basisu")) {
    const { KTX2Loader } = await import("three/addons/loaders/KTX2Loader.js");
    loader.setKTX2Loader(new KTX2Loader().detectSupport(renderer));
  }
  if ([...used].some((extension) => extension.startsWith("VRM"))) {
    const { VRMLoaderPlugin } = await import("@pixiv/three-vrm");
    loader.register((parser) => new VRMLoaderPlugin(parser, { autoUpdateHumanBones: false }));
  }
  return loader.parseAsync(bytes, folder);
}

/** What the JSON of a .glb or .gltf says it uses. */
function extensionsOf(bytes: ArrayBuffer): string[] {
  const view = new DataView(bytes);
  const binary = bytes.byteLength >= 20 && view.getUint32(0, true) === 0x46546c67;
  const json = binary ? new Uint8Array(bytes, 20, view.getUint32(12, true)) : new Uint8Array(bytes);
  const root = JSON.parse(new TextDecoder().decode(json)) as { extensionsUsed?: string[] };
  return root.extensionsUsed ?? [];
}
