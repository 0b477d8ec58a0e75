import { writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import {
  crashEnd,
  findTerminationLog,
  serializeTerminationMessage,
  type WorkerEnd,
} from "./job-end.ts";
import type { JobThreadMessage } from "./job-thread.ts";
import { workerExit } from "../contract/worker-protocol/exit-codes.ts";
import type { UnnumberedEvent, WorkerEvent } from "../contract/worker-protocol/messages.ts";

type Exit = (code: number) => never;

/**
 * Runs a job in a thread. The thread parses the environment, so that zod is loaded only once.
 * `exit` ends the process.
 * @returns what stops the job, for a reason
 */
export function superviseJob(environment: NodeJS.ProcessEnv, exit: Exit): (reason: string) => void {
  const supervisor = new JobSupervisor(environment, exit);
  return (reason) => supervisor.stop(reason);
}

/** A worker that is stopped exits after this time, unless its thread notices. */
const stopLimitMs = 400;
/** The same in a pod, which has a grace period, and may have little of a processor. */
const podStopLimitMs = 2_000;

const stoppedEnd = { code: workerExit.cancelled, outcome: "Cancelled" } as const;

/** The job has a thread of its own: planning a large model keeps it from noticing a stop. */
const jobThread = new URL("./job-thread.ts", import.meta.url);
/** Semi-spaces of 2 MB: with larger ones, garbage takes more memory than tiles of weights. */
const jobThreadLimits = { maxYoungGenerationSizeMb: 6 } as const;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printError(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Supervises a job's thread: prints its messages, and ends the process with it. */
class JobSupervisor {
  /** Of a pod; undefined for a process of a service on this machine. */
  readonly #terminationLog: string | undefined;
  readonly #thread: Worker;
  readonly #exitProcess: Exit;
  #lastSeq = 0;
  #stopReason: string | undefined;
  #exitTimer: NodeJS.Timeout | undefined;

  constructor(environment: NodeJS.ProcessEnv, exitProcess: Exit) {
    this.#exitProcess = exitProcess;
    this.#terminationLog = findTerminationLog(environment);
    this.#thread = new Worker(jobThread, {
      workerData: { ...environment },
      resourceLimits: jobThreadLimits,
    });
    this.#thread
      .on("message", (message: JobThreadMessage) => this.#receive(message))
      .on("error", (error) => this.#crash(error))
      .on("exit", (code) => this.#crash(new Error(`The job's thread ended with code ${code}`)));
  }

  /** The thread may say that it stopped, if it is not too busy. */
  stop(reason: string): void {
    if (this.#stopReason !== undefined) return;
    this.#stopReason = reason;
    const isPod = this.#terminationLog !== undefined;
    this.#exitTimer = setTimeout(
      () => {
        // A pod whose job has said nothing has no attempt whose end would be recorded.
        if (isPod && this.#lastSeq > 0) this.#printStop(reason);
        this.#exit(stoppedEnd);
      },
      isPod ? podStopLimitMs : stopLimitMs,
    );
    this.#thread.postMessage(reason);
  }

  /** Reports the stop in place of a thread that is too busy to. */
  #printStop(reason: string): void {
    const at = new Date().toISOString();
    const events = [
      { type: "log", stream: "stderr", text: `Stopped: ${reason}` },
      { type: "result", outcome: stoppedEnd.outcome },
    ] satisfies UnnumberedEvent[];
    for (const event of events) {
      print(JSON.stringify({ ...event, seq: ++this.#lastSeq, at } satisfies WorkerEvent));
    }
  }

  #exitWithin(ms: number): void {
    clearTimeout(this.#exitTimer);
    this.#exitTimer = setTimeout(() => this.#exit(stoppedEnd), ms);
  }

  #receive(message: JobThreadMessage): void {
    switch (message.kind) {
      case "line":
        return print(message.text);
      case "error":
        return printError(message.text);
      case "event":
        this.#lastSeq++;
        return print(message.text);
      case "stopping":
        return this.#exitWithin(message.limitMs);
      case "cancelled":
        return this.stop(message.text);
      case "end":
        return this.#exit(message.end);
    }
  }

  #crash(error: unknown): never {
    const { details, end } = crashEnd(error, this.#stopReason !== undefined);
    if (details !== undefined) printError(details);
    return this.#exit(end);
  }

  /** Writes the termination message of the pod, if any, and exits. */
  #exit({ code, ...end }: WorkerEnd): never {
    const file = this.#terminationLog;
    try {
      const message = { ...end, lastSeq: this.#lastSeq };
      if (file !== undefined) writeFileSync(file, serializeTerminationMessage(message));
    } catch (error) {
      printError(`The termination message cannot be written: ${String(error)}`);
    }
    return this.#exitProcess(code);
  }
}
