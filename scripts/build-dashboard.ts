import { createHash } from "node:crypto";
import { glob, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";

const root = join(import.meta.dirname, "..");
/** The built page. */
export const dashboardFolder = join(root, "build/dashboard");
const stampFile = join(dashboardFolder, "sources.sha256");
const sources = ["src/{dashboard,contract,client,report}/**/*", "package-lock.json"];
const compressed = /\.(js|css|svg)$/;

/** Builds the page into `build/dashboard`, unless it was built of the same sources. */
export async function buildDashboard(): Promise<void> {
  const hash = await hashSources();
  const built = await readFile(stampFile, "utf8").catch(() => undefined);
  if (built === hash) return;
  // Loaded only here: an installation without it can start what was built before.
  const { build } = await import("vite");
  await build({ configFile: join(root, "src/dashboard/vite.config.ts"), logLevel: "warn" });
  await compressAssets(join(dashboardFolder, "assets"));
  await writeFile(stampFile, hash);
}

async function hashSources(): Promise<string> {
  const found = await Array.fromAsync(glob(sources, { cwd: root, withFileTypes: true }));
  const files = found.filter((entry) => entry.isFile()).map((e) => join(e.parentPath, e.name));
  const hash = createHash("sha256");
  for (const file of files.toSorted()) {
    hash.update(`${file.slice(root.length)}\0`).update(await readFile(file));
  }
  return hash.digest("hex");
}

async function compressAssets(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => compressed.test(name));
  await Promise.all(
    names.map(async (name) => {
      const content = await readFile(join(folder, name));
      await writeFile(join(folder, `${name}.br`), await promisify(brotliCompress)(content));
      await writeFile(join(folder, `${name}.gz`), await promisify(gzip)(content));
    }),
  );
}

/** Without its development dependencies an installation starts with the page that it has, if any. */
function ignoreMissingBundler(error: unknown): void {
  const isMissing =
    error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
  if (!isMissing) throw error;
  process.stderr.write(
    "The dashboard is not built: `npm ci` without --omit=dev installs what that needs\n",
  );
}

if (import.meta.main) await buildDashboard().catch(ignoreMissingBundler);
