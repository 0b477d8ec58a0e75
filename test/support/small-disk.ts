import { spawnSync } from "node:child_process";
import type { TestContext } from "node:test";

/** Makes a folder a disk of 64 kB until the test ends; false where this process may not do that. */
export function mountSmallDisk(t: TestContext, folder: string): boolean {
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]);
  if (mounted.status !== 0) return false;
  t.after(() => spawnSync("umount", [folder]));
  return true;
}
