import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const exec = promisify(execFile);
const root = join(import.meta.dirname, "..");
const bin = join(root, "node_modules", ".bin");

/** Writes the GitHub Action, with all that it imports, into a folder. The same sources give the same bytes. */
export async function bundleAction(folder: string): Promise<void> {
  // In the repository, where the bundler finds the packages.
  await mkdir(join(root, "build"), { recursive: true });
  const compiled = await mkdtemp(join(root, "build", "action-"));
  try {
    await exec(join(bin, "tsc"), [
      "--project",
      join(root, "tsconfig.action.json"),
      "--outDir",
      compiled,
    ]);
    const settings = ["--target", "es2022", "--license", "licenses.txt", "--no-cache", "--quiet"];
    // Named from here, so that the folder's name is not in the bundle.
    await exec(join(bin, "ncc"), ["build", "action/main.js", "--out", folder, ...settings], {
      cwd: compiled,
    });
  } finally {
    await rm(compiled, { recursive: true });
  }
}

if (import.meta.main) await bundleAction(join(root, "dist"));
