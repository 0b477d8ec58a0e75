import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { keptFolder } from "../contract/jobs/worker.ts";
import type { FetchedFiles } from "./fetch-model-files.ts";

/**
 * Finds the folder of what earlier attempts on this machine did with the same model, and removes
 * what they did with another one, or before the machine was started: its disk may lack some of it.
 * @returns undefined where it is not known when the machine was started
 */
export async function openKeptWork(
  workDirectory: string,
  { sha256, external }: Pick<FetchedFiles, "sha256" | "external">,
): Promise<string | undefined> {
  if (process.platform !== "linux") return undefined;
  const start = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  const content = JSON.stringify({ start, sha256, external });
  const name = createHash("sha256").update(content).digest("hex");
  const folder = path.join(workDirectory, keptFolder);
  const kept = path.join(folder, name);
  await mkdir(kept, { recursive: true });
  for (const other of await readdir(folder)) {
    if (other !== name) await rm(path.join(folder, other), { recursive: true });
  }
  return kept;
}
