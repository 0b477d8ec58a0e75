import { lstatSync, readdirSync } from "node:fs";
import path from "node:path";
import type { JobCosts } from "../contract/jobs/telemetry.ts";
import { readPeakMemoryBytes } from "../engine/runtime/read-peak-memory-bytes.ts";
import { peakWithRuntime } from "../engine/runtime/runtime-process.ts";

/** Least time between two looks at the folder, milliseconds. */
const intervalMs = 100;

export interface Usage {
  /** Looks at the folder from time to time, however often it is called: files may not stay. */
  note(this: void): void;
  read(this: void): Promise<JobCosts>;
}

/** Measures what a job takes from now on: memory of its processes, files in its folder, time. */
export function watchUsage(folder: string): Usage {
  const startedAt = performance.now();
  let diskBytes = 0;
  let notedAt = -Infinity;
  const measure = () => {
    diskBytes = Math.max(diskBytes, countFolderBytes(folder));
    notedAt = performance.now();
  };
  return {
    note() {
      if (performance.now() - notedAt >= intervalMs) measure();
    },
    read: async () => {
      measure();
      const peakMemoryBytes = Math.max(await readPeakMemoryBytes(), peakWithRuntime());
      const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(3));
      return { peakMemoryBytes, diskBytes, seconds };
    },
  };
}

/** Bytes of all files in a folder, each link's once; 0 where a folder in it goes meanwhile. */
export function countFolderBytes(folder: string): number {
  const sizes = new Map<number, number>();
  try {
    for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      const stats = lstatSync(path.join(folder, name), { throwIfNoEntry: false });
      if (stats?.isFile() === true) sizes.set(stats.ino, stats.size);
    }
  } catch {
    return 0;
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}
