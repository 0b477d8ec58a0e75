import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** Largest resident memory of this process. On Linux `maxRSS` includes the forking process's. */
export async function readPeakMemoryBytes(): Promise<number> {
  return process.platform === "linux"
    ? readPeakOfProcess("self")
    : process.resourceUsage().maxRSS * 1024;
}

/** Largest resident memory of a process, 0 once it has ended; only Linux says that of another one. */
export async function readPeakOfProcess(pid: number | "self"): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}

/**
 * Forgets earlier peaks where the system can do that.
 * @returns resident memory of this process, from which the peak starts again
 */
export function resetPeakMemory(): number {
  try {
    writeFileSync("/proc/self/clear_refs", "5");
  } catch {
    // Only Linux has the file, and sandboxes can hide it: the peak is then since the start.
  }
  return process.memoryUsage.rss();
}
