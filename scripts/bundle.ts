import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const exec = promisify(execFile);
const root = join(import.meta.dirname, "..");
const bin = join(root, "node_modules", ".bin");

/** Bundles the GitHub Action into a folder. The same sources give the same bytes. */
export async function bundleAction(folder: string): Promise<void> {
  // Inside the repository, where the bundler finds the packages.
  await mkdir(join(root, "build"), { recursive: true });
  const compiled = await mkdtemp(join(root, "build", "action-"));
  try {
    await exec(join(bin, "tsc"), [
      "--project",
      join(root, "tsconfig.action.json"),
      "--outDir",
      compiled,
      "--removeComments",
    ]);
    const settings = ["--target", "es2022", "--license", "licenses.txt", "--no-cache", "--quiet"];
    // A relative path keeps the folder's name out of the bundle.
    await exec(join(bin, "ncc"), ["build", "action/main.js", "--out", folder, ...settings], {
      cwd: compiled,
    });
  } finally {
    await rm(compiled, { recursive: true });
  }
}

if (import.meta.main) await bundleAction(join(root, "dist"));
