import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

/** A folder on a disk of 64 kB that exists until the test ends; undefined where this process may not mount one. */
export async function mountSmallDisk(
  t: Pick<TestContext, "after">,
  size = "64k",
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "small-disk-"));
  const mounted =
    spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder]).status === 0;
  t.after(async () => {
    if (mounted) spawnSync("umount", [folder]);
    await rm(folder, { recursive: true });
  });
  return mounted ? folder : undefined;
}
