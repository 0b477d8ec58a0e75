import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [
    { name: "styles-first", transformIndexHtml: { order: "post", handler: putStylesFirst } },
  ],
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
        codeSplitting: {
          groups: [
            // In one chunk, so that zod is set up before other chunks define schemas.
            { name: "zod", test: /plain-zod|node_modules\/zod\//, priority: 1 },
            // What the first view needs is few files: each costs a slow connection a round trip.
            { name: "first", tags: ["$initial"] },
          ],
        },
      },
    },
  },
  worker: { format: "es" },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});

/** The shell can be painted as soon as it has its styles: scripts have to wait for them. */
function putStylesFirst(html: string): string {
  const links = /\s*<link rel="stylesheet"[^>]*>/g;
  const styles = html.match(links) ?? [];
  return html.replace(links, "").replace(/\s*<script/, (script) => styles.join("") + script);
}
