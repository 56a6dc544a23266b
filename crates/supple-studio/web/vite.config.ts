import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: { target: "es2022", chunkSizeWarningLimit: 2000 },
  // `npm run dev` shows the page while `supple view --port 7411` simulates. Its requests are given the server's own origin.
  server: {
    proxy: {
      "/socket": { target: "ws://127.0.0.1:7411", ws: true, rewriteWsOrigin: true, changeOrigin: true },
      "/take": { target: "http://127.0.0.1:7411", changeOrigin: true },
    },
  },
});
