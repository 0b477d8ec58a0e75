import { readdir, readFile } from "node:fs/promises";

/** Processes of this machine by their arguments or their environment. */
export async function findProcesses(
  list: "cmdline" | "environ",
  isWanted: (words: readonly string[]) => boolean,
): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      // A process that has ended meanwhile has none.
      const words = await readFile(`/proc/${pid}/${list}`, "utf8").catch(() => "");
      return isWanted(words.split("\0")) ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}

/** Processes of a job's workers, in whatever pods they run. */
export function workerProcesses(jobId: string): Promise<number[]> {
  return findProcesses("environ", (words) => words.includes(`MOS_JOB_ID=${jobId}`));
}
