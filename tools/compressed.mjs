// Compresses characters in every way that the reference encoders know, each beside the same as the reference decoders read it, for
// crates/supple-assets/tests/compression.rs:
//   npm install --prefix DIR draco3d meshoptimizer @gltf-transform/core @gltf-transform/extensions @gltf-transform/functions
//   cp tools/compressed.mjs DIR && node DIR/compressed.mjs DIR/out FILE.glb ...
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { NodeIO } from "@gltf-transform/core";
import { ALL_EXTENSIONS, EXTMeshoptCompression, KHRDracoMeshCompression } from "@gltf-transform/extensions";
import { quantize, reorder } from "@gltf-transform/functions";
import draco3d from "draco3d";
import { MeshoptDecoder, MeshoptEncoder } from "meshoptimizer";

const [out, ...files] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
await Promise.all([MeshoptDecoder.ready, MeshoptEncoder.ready]);
const io = new NodeIO().registerExtensions(ALL_EXTENSIONS).registerDependencies({
  "draco3d.decoder": await draco3d.createDecoderModule(),
  "draco3d.encoder": await draco3d.createEncoderModule(),
  "meshopt.decoder": MeshoptDecoder,
  "meshopt.encoder": MeshoptEncoder,
});

async function write(name, document) {
  const bytes = await io.writeBinary(document);
  writeFileSync(join(out, `${name}.glb`), bytes);
  const back = await io.readBinary(bytes);
  for (const used of back.getRoot().listExtensionsUsed()) {
    if (/compression/.test(used.extensionName)) used.dispose();
  }
  writeFileSync(join(out, `${name}.plain`), await io.writeBinary(back));
}

for (const file of files) {
  const name = basename(file).replace(/\.\w+$/, "");
  for (const method of [0, 1]) {
    for (const speed of [0, 1, 3, 5, 7, 10]) {
      const document = await io.read(file);
      const options = { method, encodeSpeed: speed, decodeSpeed: speed };
      document.createExtension(KHRDracoMeshCompression).setRequired(true).setEncoderOptions(options);
      await write(`${name}-draco-${method}-${speed}`, document);
    }
  }
  for (const method of ["QUANTIZE", "FILTER"]) {
    const document = await io.read(file);
    const pattern = method === "FILTER" ? /^(?!NORMAL|TANGENT)/ : /.*/;
    await document.transform(reorder({ encoder: MeshoptEncoder }), quantize({ pattern }));
    const options = { method: EXTMeshoptCompression.EncoderMethod[method] };
    document.createExtension(EXTMeshoptCompression).setRequired(true).setEncoderOptions(options);
    await write(`${name}-meshopt-${method.toLowerCase()}`, document);
  }
}
