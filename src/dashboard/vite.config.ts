import { join } from "node:path";
import { defineConfig } from "vite";
import { routes } from "../contract/routes/routes.ts";

const routesFile = join(import.meta.dirname, "../contract/routes/routes.ts");

export default defineConfig({
  root: import.meta.dirname,
  plugins: [
    { name: "trust-answers", load: loadTrustingRoutes },
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
      // A schema that no page parses by is left out.
      treeshake: { moduleSideEffects: [{ test: /\/src\/contract\//, sideEffects: false }] },
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

/**
 * The table of routes without its schemas, which would be half of what the page evaluates at its
 * start: it trusts the answers of the service that it comes from.
 */
function loadTrustingRoutes(id: string): string | undefined {
  if (id !== routesFile) return undefined;
  const entries = Object.entries(routes).map(([name, { method, path, replies }]) => {
    const answers = Object.entries(replies).map(([status, reply]) => {
      const events = "events" in reply ? Object.keys(reply.events) : [];
      const parsers = events.map((event) => `"${event}": trusted`);
      return `${status}: { json: trusted, events: { ${parsers.join(", ")} } }`;
    });
    return `${name}: { method: "${method}", path: "${path}", replies: { ${answers.join(", ")} } }`;
  });
  return `
    const trusted = { parse: (answer) => answer };
    export const routes = { ${entries.join(",\n")} };
  `;
}
