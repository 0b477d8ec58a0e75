import { readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { workerExit } from "../contract/worker-protocol/exit-codes.ts";
import type { BlobFiles } from "../storage/blob-store.ts";
import { createDirectoryBlobStore } from "../storage/directory-blob-store.ts";
import { createServiceBlobStore } from "../storage/service-blob-store.ts";
import { crashEnd, type WorkerEnd } from "./job-end.ts";
import {
  createServiceConnection,
  type RequestTimeouts,
  type ServiceConnection,
  ServiceRefusal,
} from "./service-connection.ts";
import { workOnAssignment } from "./work-on-assignment.ts";
import { readWorkerSettings, type WorkerSettings } from "./worker-settings.ts";

const minute = 60_000;
/** A process ends with its service: only that can record its result. */
const processTimeouts: RequestTimeouts = {
  start: 5 * minute,
  events: 5 * minute,
  files: 5 * minute,
  token: 0,
};
/** A pod waits for the service as long as its deadline allows: another one could do no more. */
const podTimeouts: RequestTimeouts = {
  start: Infinity,
  events: Infinity,
  files: Infinity,
  token: minute,
};

const exitCodes = {
  Completed: workerExit.completed,
  Failed: workerExit.failed,
  Cancelled: workerExit.cancelled,
};

/** Message of a job's thread to the main thread. */
export type JobThreadMessage =
  | { readonly kind: "line" | "error"; readonly text: string }
  /** A pod's event as JSON, to be printed, in the order of their numbers. */
  | { readonly kind: "event"; readonly text: string }
  /** The service says that the job has to stop. */
  | { readonly kind: "cancelled"; readonly text: string }
  /** A pod's job stops, and has so long to report that. */
  | { readonly kind: "stopping"; readonly limitMs: number }
  | { readonly kind: "end"; readonly end: WorkerEnd };

const stop = new AbortController();

function post(message: JobThreadMessage): void {
  parentPort?.postMessage(message);
}

function crash(error: unknown): void {
  const hasEnded = error instanceof ServiceRefusal && error.code === "job_finished";
  const { details, end } = crashEnd(error, stop.signal.aborted || hasEnded);
  if (details !== undefined) post({ kind: "error", text: details });
  post({ kind: "end", end });
}

/** Workers in pods print their events only, and others their lines. */
function createWorkerContext(settings: WorkerSettings) {
  if ("MOS_JOB_TOKEN" in settings) {
    const { MOS_JOB_TOKEN: token, MOS_STORAGE_DIR: directory } = settings;
    const { MOS_SERVICE_URL: url, MOS_SERVICE_SOCKET: socketPath, MOS_JOB_ID: jobId } = settings;
    const connection = createServiceConnection({
      url,
      socketPath,
      jobId,
      token: () => token,
      timeouts: processTimeouts,
    });
    return {
      connection,
      openBlobs: async () => openLocalBlobs(directory, connection),
      deliveryLimitMs: processTimeouts.events,
      stopLimitMs: 300,
      progressIntervalMs: 250,
      printLine: (text: string) => post({ kind: "line", text }),
      recordEvent: () => {},
      onStopping: () => {},
    };
  }
  const { MOS_SERVICE_URL: url, MOS_JOB_ID: jobId, MOS_JOB_TOKEN_FILE: tokenFile } = settings;
  const token = () => readFileSync(tokenFile, "utf8").trim();
  const connection = createServiceConnection({
    url,
    jobId,
    token,
    timeouts: podTimeouts,
    outageReports: { everyMs: 15_000, report: (text) => post({ kind: "error", text }) },
  });
  const stopLimitMs = settings.MOS_STOP_SECONDS * 1000;
  return {
    connection,
    openBlobs: async () => createServiceBlobStore(connection.requestService),
    deliveryLimitMs: minute,
    stopLimitMs,
    progressIntervalMs: 1_000,
    printLine: () => {},
    recordEvent: (text: string) => post({ kind: "event", text }),
    // A pod has its grace period to deliver what it has to say.
    onStopping: () => post({ kind: "stopping", limitMs: stopLimitMs }),
  };
}

/** What the job reads lies in the folder, as links; what it writes, the service stores. */
async function openLocalBlobs(
  directory: string,
  { requestService }: ServiceConnection,
): Promise<BlobFiles> {
  const service = createServiceBlobStore(requestService);
  return {
    ...(await createDirectoryBlobStore(directory)),
    writeFile: (path, options) => service.writeFile(path, options),
  };
}

async function work(): Promise<void> {
  const settings = readWorkerSettings(workerData);
  const context = createWorkerContext(settings);
  parentPort?.on("message", (reason: string) => {
    context.onStopping();
    stop.abort(new Error(reason));
  });
  const end = await workOnAssignment(await context.connection.findAssignment(stop.signal), {
    ...context,
    workDirectory: settings.MOS_WORK_DIR,
    signal: stop.signal,
    printError: (text) => post({ kind: "error", text }),
    onCancelled: () => post({ kind: "cancelled", text: "the job was cancelled" }),
    onFailure: crash,
  });
  post({ kind: "end", end: { code: exitCodes[end.outcome], ...end } });
}

work().catch(crash);
