import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { jobId } from "../contract/id.ts";
import { type TerminationMessage, workerExit } from "../contract/worker.ts";
import { createDirectoryBlobStore } from "../storage/directory-blob-store.ts";
import { createServiceBlobStore } from "../storage/service-blob-store.ts";
import { connectService, type Patience, ServiceRefusal } from "./service-connection.ts";
import { onStopRequest } from "./stop-request.ts";
import { terminationText } from "./termination-text.ts";
import { workOnAssignment } from "./work-on-assignment.ts";

/** A worker that was told to stop ends after this time, whatever it is doing. */
const stopLimitMs = 800;

const anywhere = { MOS_SERVICE_URL: z.url(), MOS_JOB_ID: jobId, MOS_WORK_DIR: z.string().min(1) };
const environment = z.union([
  /** A process of a service on this machine. */
  z.object({ ...anywhere, MOS_JOB_TOKEN: z.string().min(1), MOS_STORAGE_DIR: z.string().min(1) }),
  /** A pod. Its token is replaced now and then; its output is a second way for its events. */
  z.object({
    ...anywhere,
    MOS_JOB_TOKEN_FILE: z.string().min(1),
    MOS_TERMINATION_LOG: z.string().min(1).default("/dev/termination-log"),
  }),
]);

const minute = 60_000;
/** A process ends with its service; without it, it could not tell its result. */
const processPatience: Patience = { start: 5 * minute, events: 5 * minute, files: 5 * minute, token: 0 };
const podPatience: Patience = { start: 5 * minute, events: Infinity, files: 15 * minute, token: minute };

const exitCodes = { Completed: workerExit.completed, Failed: workerExit.failed, Cancelled: workerExit.cancelled };

const stop = new AbortController();
let lastSeq = 0;
let leaveMessage: (text: string) => void = () => {};

/** Ends the process, with what is left of it for whoever looks at the pod. */
function exit(code: number, end: Omit<TerminationMessage, "lastSeq">): never {
  try {
    leaveMessage(terminationText({ ...end, lastSeq }));
  } catch (error) {
    printError(`The termination message cannot be written: ${String(error)}`);
  }
  process.exit(code);
}

function stopFor(reason: string): void {
  if (stop.signal.aborted) return;
  setTimeout(() => exit(workerExit.cancelled, { outcome: "Cancelled" }), stopLimitMs);
  stop.abort(new Error(reason));
}

function crash(error: unknown): never {
  if (stop.signal.aborted || (error instanceof ServiceRefusal && error.code === "job_finished")) {
    exit(workerExit.cancelled, { outcome: "Cancelled" });
  }
  const [message, details] = error instanceof Error ? [error.message, error.stack] : [String(error), String(error)];
  printError(`The worker cannot go on: ${details}`);
  exit(workerExit.crashed, { outcome: "Failed", error: { code: "worker_crashed", message } });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printError(text: string): void {
  process.stderr.write(`${text}\n`);
}

type Settings = z.infer<typeof environment>;

/** Workers in pods print their events alone, and others their lines. */
function placeFor(settings: Settings) {
  if ("MOS_JOB_TOKEN" in settings) {
    const { MOS_JOB_TOKEN: token, MOS_STORAGE_DIR: directory } = settings;
    return {
      connection: connect(settings, () => token, processPatience),
      openBlobs: async () => createDirectoryBlobStore(directory),
      deliveryLimitMs: processPatience.events,
      progressIntervalMs: 250,
      printLine: print,
      printEvent: () => {},
    };
  }
  const { MOS_JOB_TOKEN_FILE: tokenFile, MOS_TERMINATION_LOG: messageFile } = settings;
  leaveMessage = (text) => writeFileSync(messageFile, text);
  const connection = connect(settings, () => readFileSync(tokenFile, "utf8").trim(), podPatience);
  return {
    connection,
    openBlobs: async () => createServiceBlobStore(connection.ask),
    deliveryLimitMs: minute,
    progressIntervalMs: 1_000,
    printLine: () => {},
    printEvent: print,
  };
}

function connect({ MOS_SERVICE_URL: url, MOS_JOB_ID: id }: Settings, token: () => string, patience: Patience) {
  return connectService({ url, jobId: id, token, patience });
}

async function main(): Promise<never> {
  const settings = environment.parse(process.env);
  const { printEvent, ...place } = placeFor(settings);
  onStopRequest(stopFor);
  const end = await workOnAssignment(await place.connection.findAssignment(stop.signal), {
    ...place,
    workDirectory: settings.MOS_WORK_DIR,
    signal: stop.signal,
    printError,
    recordEvent(json) {
      lastSeq++;
      printEvent(json);
    },
    onCancelled: () => stopFor("the job was cancelled"),
    onFailure: crash,
  });
  exit(exitCodes[end.outcome], end);
}

main().catch(crash);
