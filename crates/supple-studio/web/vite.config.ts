import { defineConfig } from "vite";

// `SUPPLE_KEY=… npm run dev` shows the page while `supple view --port 7411` simulates; the key is that of the address it prints. Requests are given the
// server's own origin.
const supple = "127.0.0.1:7411";
const headers = { origin: `http://${supple}`, authorization: `Bearer ${process.env.SUPPLE_KEY ?? ""}` };
const http = { target: `http://${supple}`, changeOrigin: true, headers };

export default defineConfig({
  base: "./",
  build: { target: "es2022", chunkSizeWarningLimit: 2000 },
  server: {
    proxy: {
      "/socket": { target: `ws://${supple}`, ws: true, rewriteWsOrigin: true, changeOrigin: true, headers },
      ...Object.fromEntries(["/take", "/saved", "/start", "/look", "/baked.glb", "/baked.bvh", "/baked.usda", "/baked.vrma", "/rig.toml", "/file", "/compare"].map((path) => [path, http])),
    },
  },
});
