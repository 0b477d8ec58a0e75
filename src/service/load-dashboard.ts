import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Dashboard, DashboardFile } from "../server/http/bind-dashboard.ts";
import { statOrUndefined } from "../storage/file-error.ts";

/** Where the built page is; `npm start` builds it. */
const builtFolder = join(import.meta.dirname, "../../build/dashboard");

const mediaTypes: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** Compressed forms of a file lie beside it; the smallest first. */
const encodings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

/** Reads the built page into memory; undefined where it was not built. */
export async function loadDashboard(folder = builtFolder): Promise<Dashboard | undefined> {
  const shellFile = join(folder, "index.html");
  if ((await statOrUndefined(shellFile)) === undefined) return undefined;
  const names = await readdir(join(folder, "assets"));
  const served = names.filter((name) => extname(name) in mediaTypes);
  const files = await Promise.all(
    served.map(async (name) => {
      return [`/assets/${name}`, await loadFile(join(folder, "assets", name))] as const;
    }),
  );
  return { shell: await readFile(shellFile, "utf8"), files: new Map(files) };
}

async function loadFile(path: string): Promise<DashboardFile> {
  const encoded = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const [encoding, suffix] of encodings) {
    const stats = await statOrUndefined(`${path}${suffix}`);
    if (stats !== undefined) encoded.set(encoding, await readFile(`${path}${suffix}`));
  }
  const mediaType = mediaTypes[extname(path)] ?? "application/octet-stream";
  return { mediaType, content: await readFile(path), encoded };
}
