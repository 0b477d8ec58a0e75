import { rmSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const prefix = "mos-cluster-";

const created: string[] = [];
process.once("exit", () => {
  for (const folder of created) rmSync(folder, { recursive: true, force: true });
});

/** A temporary folder that goes with this process; after a kill its name shows the next run that nobody uses it. */
export async function createRunFolder(): Promise<string> {
  await removeAbandonedFolders();
  const folder = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`));
  created.push(folder);
  return folder;
}

async function removeAbandonedFolders(): Promise<void> {
  const abandoned = (await readdir(tmpdir())).filter(isAbandoned);
  await Promise.all(
    // Programs of a run that was killed just now may still write to it.
    abandoned.map((name) =>
      rm(join(tmpdir(), name), { recursive: true, force: true, maxRetries: 20 }),
    ),
  );
}

/** Whether this is the name of a run folder whose process is gone. */
export function isAbandoned(name: string): boolean {
  return name.startsWith(prefix) && !isAlive(Number.parseInt(name.slice(prefix.length), 10));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}
