/**
 * Loads what a worker and its processes load, so that Node keeps it compiled in the folder
 * NODE_COMPILE_CACHE: workers may only read it. The image and the tests run it once.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import "../engine/runtime/session-requests.ts";
// Without a job it ends at once.
import "./job-thread.ts";
import "./supervise-job.ts";

// So do these, which end the process that loads them.
for (const path of ["main.ts", "../engine/runtime/session-process.ts"]) {
  const file = fileURLToPath(new URL(path, import.meta.url));
  spawnSync(process.execPath, [file], { stdio: "ignore" });
}
