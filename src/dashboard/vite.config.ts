import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  build: {
    outDir: "../../build/dashboard",
    emptyOutDir: true,
    target: "es2024",
    // The page's policy allows no scripts and styles in addresses or in the document.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        assetFileNames: "assets/[name]-[hash][extname]",
        // In one chunk, so that zod is set up before other chunks define schemas.
        codeSplitting: { groups: [{ name: "zod", test: /plain-zod|node_modules\/zod\// }] },
      },
    },
  },
  worker: { format: "es" },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
