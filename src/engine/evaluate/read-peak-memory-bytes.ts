import { readFile } from "node:fs/promises";

/** Largest resident memory of this process, bytes. On Linux `maxRSS` begins at that of the process that forked it. */
export async function readPeakMemoryBytes(): Promise<number> {
  const kilobytes =
    process.platform === "linux"
      ? /^VmHWM:\s*(\d+) kB$/m.exec(await readFile("/proc/self/status", "utf8"))?.[1]
      : process.resourceUsage().maxRSS;
  return Number(kilobytes) * 1024;
}
