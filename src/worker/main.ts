import { fstatSync } from "node:fs";
import { workerExit } from "../contract/worker-protocol/exit-codes.ts";

/** Until the job has begun there is nothing to end, and nothing to say. */
let stop: (reason: string) => void = () => process.exit(workerExit.cancelled);

/**
 * Calls `stop` when the worker has to stop: on SIGTERM or SIGINT, and when standard input closes,
 * where that is a pipe: then the process that started the worker has ended.
 */
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => stop(`the worker received ${signal}`));
}
const input = fstatSync(0);
if (input.isFIFO() || input.isSocket()) {
  process.stdin.resume();
  process.stdin.on("close", () => stop("its service has ended"));
}

// Modules take a while to load: the first process of a container would not hear a signal before.
const { superviseJob } = await import("./supervise-job.ts");
stop = superviseJob(process.env, (code) => process.exit(code));
