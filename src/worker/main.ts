import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { jobId } from "../contract/id.ts";
import { type TerminationMessage, workerExit } from "../contract/worker.ts";
import { createDirectoryBlobStore } from "../storage/directory-blob-store.ts";
import { createServiceBlobStore } from "../storage/service-blob-store.ts";
import { onStopRequest } from "./on-stop-request.ts";
import { serializeTerminationMessage } from "./serialize-termination-message.ts";
import { createServiceConnection, type RequestTimeouts } from "./service-connection.ts";
import { ServiceRefusal } from "./service-errors.ts";
import { workOnAssignment } from "./work-on-assignment.ts";

/** A worker that is stopped exits after this time at the latest. */
const stopLimitMs = 400;

const commonVariables = {
  MOS_SERVICE_URL: z.url(),
  MOS_JOB_ID: jobId,
  MOS_WORK_DIR: z.string().min(1),
};
const environment = z.union([
  /** A process of a service on this machine. */
  z.object({
    ...commonVariables,
    MOS_JOB_TOKEN: z.string().min(1),
    MOS_STORAGE_DIR: z.string().min(1),
  }),
  /** A pod. Its token is replaced from time to time; its output is a second copy of its events. */
  z.object({
    ...commonVariables,
    MOS_JOB_TOKEN_FILE: z.string().min(1),
    MOS_TERMINATION_LOG: z.string().min(1).default("/dev/termination-log"),
  }),
]);

const minute = 60_000;
/** A process ends with its service, which alone can record its result. */
const processTimeouts: RequestTimeouts = {
  start: 5 * minute,
  events: 5 * minute,
  files: 5 * minute,
  token: 0,
};
const podTimeouts: RequestTimeouts = {
  start: 5 * minute,
  events: Infinity,
  files: 15 * minute,
  token: minute,
};

const exitCodes = {
  Completed: workerExit.completed,
  Failed: workerExit.failed,
  Cancelled: workerExit.cancelled,
};

const stop = new AbortController();
let lastSeq = 0;
let writeTerminationMessage: (text: string) => void = () => {};

/** Writes the termination message of the pod, if any, and exits. */
function exitWorker(code: number, end: Omit<TerminationMessage, "lastSeq">): never {
  try {
    writeTerminationMessage(serializeTerminationMessage({ ...end, lastSeq }));
  } catch (error) {
    printError(`The termination message cannot be written: ${String(error)}`);
  }
  process.exit(code);
}

function requestStop(reason: string): void {
  if (stop.signal.aborted) return;
  setTimeout(() => exitWorker(workerExit.cancelled, { outcome: "Cancelled" }), stopLimitMs);
  stop.abort(new Error(reason));
}

function crash(error: unknown): never {
  if (stop.signal.aborted || (error instanceof ServiceRefusal && error.code === "job_finished")) {
    exitWorker(workerExit.cancelled, { outcome: "Cancelled" });
  }
  const [message, details] =
    error instanceof Error ? [error.message, error.stack] : [String(error), String(error)];
  printError(`The worker cannot go on: ${details}`);
  exitWorker(workerExit.crashed, { outcome: "Failed", error: { code: "worker_crashed", message } });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printError(text: string): void {
  process.stderr.write(`${text}\n`);
}

type WorkerEnvironment = z.infer<typeof environment>;

/** Workers in pods print their events only, and others their lines. */
function createWorkerContext(settings: WorkerEnvironment) {
  if ("MOS_JOB_TOKEN" in settings) {
    const { MOS_JOB_TOKEN: token, MOS_STORAGE_DIR: directory } = settings;
    return {
      connection: connectWorker(settings, () => token, processTimeouts),
      openBlobs: async () => createDirectoryBlobStore(directory),
      deliveryLimitMs: processTimeouts.events,
      progressIntervalMs: 250,
      printLine: print,
      printEvent: () => {},
    };
  }
  const { MOS_JOB_TOKEN_FILE: tokenFile, MOS_TERMINATION_LOG: messageFile } = settings;
  writeTerminationMessage = (text) => writeFileSync(messageFile, text);
  const connection = connectWorker(
    settings,
    () => readFileSync(tokenFile, "utf8").trim(),
    podTimeouts,
  );
  return {
    connection,
    openBlobs: async () => createServiceBlobStore(connection.requestService),
    deliveryLimitMs: minute,
    progressIntervalMs: 1_000,
    printLine: () => {},
    printEvent: print,
  };
}

function connectWorker(
  { MOS_SERVICE_URL: url, MOS_JOB_ID: id }: WorkerEnvironment,
  token: () => string,
  timeouts: RequestTimeouts,
) {
  return createServiceConnection({ url, jobId: id, token, timeouts });
}

async function main(): Promise<never> {
  const settings = environment.parse(process.env);
  const { printEvent, ...context } = createWorkerContext(settings);
  onStopRequest(requestStop);
  const end = await workOnAssignment(await context.connection.findAssignment(stop.signal), {
    ...context,
    workDirectory: settings.MOS_WORK_DIR,
    signal: stop.signal,
    printError,
    recordEvent(json) {
      lastSeq++;
      printEvent(json);
    },
    onCancelled: () => requestStop("the job was cancelled"),
    onFailure: crash,
  });
  exitWorker(exitCodes[end.outcome], end);
}

main().catch(crash);
