import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** Largest resident memory of this process. On Linux `maxRSS` includes the forking process's. */
export async function readPeakMemoryBytes(): Promise<number> {
  const kilobytes =
    process.platform === "linux"
      ? /^VmHWM:\s*(\d+) kB$/m.exec(await readFile("/proc/self/status", "utf8"))?.[1]
      : process.resourceUsage().maxRSS;
  return Number(kilobytes) * 1024;
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
