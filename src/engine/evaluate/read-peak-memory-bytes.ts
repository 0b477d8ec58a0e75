import { readFile } from "node:fs/promises";

/** Largest resident memory of this process. On Linux `maxRSS` includes the forking process's. */
export async function readPeakMemoryBytes(): Promise<number> {
  const kilobytes =
    process.platform === "linux"
      ? /^VmHWM:\s*(\d+) kB$/m.exec(await readFile("/proc/self/status", "utf8"))?.[1]
      : process.resourceUsage().maxRSS;
  return Number(kilobytes) * 1024;
}
