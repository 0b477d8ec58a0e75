import { writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { workerExit } from "../contract/worker.ts";
import { crashEnd } from "./crash-end.ts";
import type { JobThreadMessage, WorkerEnd } from "./job-thread-message.ts";
import { onStopRequest } from "./on-stop-request.ts";
import { serializeTerminationMessage } from "./serialize-termination-message.ts";
import { type WorkerSettings, workerSettings } from "./worker-settings.ts";

/** A worker that is stopped exits after this time at the latest. */
const stopLimitMs = 400;

/** The job has a thread of its own: planning a large model keeps it from hearing of a stop. */
const jobThread = new URL("./job-thread.ts", import.meta.url);
/** Semi-spaces of 2 MB: with larger ones, garbage takes more memory than tiles of weights. */
const jobThreadLimits = { maxYoungGenerationSizeMb: 6 } as const;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printError(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Runs the job in its thread, prints what it tells, and ends the process with it or before. */
function superviseJob(settings: WorkerSettings): void {
  const pod = "MOS_TERMINATION_LOG" in settings ? settings : undefined;
  let lastSeq = 0;
  let isStopped = false;

  const exit = ({ code, ...end }: WorkerEnd): never => {
    try {
      const message = serializeTerminationMessage({ ...end, lastSeq });
      if (pod !== undefined) writeFileSync(pod.MOS_TERMINATION_LOG, message);
    } catch (error) {
      printError(`The termination message cannot be written: ${String(error)}`);
    }
    process.exit(code);
  };
  const crash = (error: unknown) => {
    const { details, end } = crashEnd(error, isStopped);
    if (details !== undefined) printError(details);
    exit(end);
  };
  const thread = new Worker(jobThread, { workerData: settings, resourceLimits: jobThreadLimits });
  const requestStop = (reason: string) => {
    if (isStopped) return;
    isStopped = true;
    setTimeout(() => exit({ code: workerExit.cancelled, outcome: "Cancelled" }), stopLimitMs);
    thread.postMessage(reason);
  };
  const receive = (message: JobThreadMessage) => {
    switch (message.kind) {
      case "line":
        return print(message.text);
      case "error":
        return printError(message.text);
      case "event":
        lastSeq++;
        return pod === undefined ? undefined : print(message.text);
      case "cancelled":
        return requestStop(message.text);
      case "end":
        return exit(message.end);
    }
  };
  thread.on("message", receive).on("error", crash);
  thread.on("exit", (code) => crash(new Error(`The job's thread ended with exit code ${code}`)));
  onStopRequest(requestStop);
}

superviseJob(workerSettings.parse(process.env));
