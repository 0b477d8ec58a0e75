/** Options by which a process of Node has a clock that is ahead of the machine's, or behind it. */
export function shiftedClock(ms: number): string {
  return nodeOptions(`const now = Date.now;
    globalThis.Date = class extends Date {
      constructor(...values) { values.length === 0 ? super(now() + ${ms}) : super(...values); }
      static now() { return now() + ${ms}; }
    };`);
}

/** Options by which the time that a process measures goes on so many times as fast. */
export function fastClock(factor: number): string {
  return nodeOptions(`const now = performance.now.bind(performance);
    performance.now = () => now() * ${factor};`);
}

/**
 * Options that block a job's thread once the file `begin` exists; the thread then writes the file
 * `busy`.
 */
export function blockedJobThread(files: { readonly begin: string; readonly busy: string }): string {
  return nodeOptions(`import { existsSync, writeFileSync } from "node:fs";
    import { workerData } from "node:worker_threads";
    const files = ${JSON.stringify(files)};
    const check = () => {
      if (!existsSync(files.begin)) return;
      writeFileSync(files.busy, "");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    };
    if (workerData?.MOS_JOB_ID !== undefined) setInterval(check, 10).unref();`);
}

/** Node imports the module before all others. */
function nodeOptions(module: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(module)}`;
}
