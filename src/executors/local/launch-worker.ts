import { mkdir, readdir } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { assignedBlobs } from "../../contract/jobs/worker-transfers.ts";
import type { StartedAttempt } from "../../records/jobs/attempt-records.ts";
import type { Records } from "../../records/open-records.ts";
import type { BlobStore } from "../../storage/blob-store.ts";
import { blobPath } from "../../storage/directory-blob-store.ts";
import type { Contain } from "./containment.ts";
import { jobSocketName, openJobSocket } from "./job-socket.ts";
import {
  runWorkerProcess,
  type WorkerProcess,
  type WorkerProcessExit,
} from "./run-worker-process.ts";

export interface LaunchOptions {
  readonly records: Records;
  readonly blobs: BlobStore;
  /** Where workers that are not contained reach the service, such as `http://127.0.0.1:8080`. */
  readonly serviceUrl: string;
  /** Answers the requests of those that are. */
  readonly answerWorker: RequestListener;
  /** Folder of the jobs' scratch folders; no other executor may use it. */
  readonly workDirectory: string;
  /** Variables of this process' environment that workers need. */
  readonly environment: Readonly<Record<string, string>>;
  readonly workerPath?: string;
  readonly contain: Contain | undefined;
}

export interface LocalAttempt extends StartedAttempt {
  readonly jobId: string;
  readonly secret: string;
}

const mainWorker = fileURLToPath(new URL("../../worker/main.ts", import.meta.url));

/** Folder of the blobs that a job reads, in its scratch folder. */
function jobStorage(workDirectory: string, jobId: string): string {
  return join(workDirectory, jobId, "storage");
}

/** Runs the worker of an attempt in the job's folder, until no process of it is left. */
export async function launchWorker(
  run: LocalAttempt,
  options: LaunchOptions,
  { signal, onStarted }: Pick<WorkerProcess, "onStarted"> & { readonly signal: AbortSignal },
): Promise<WorkerProcessExit> {
  const { records, blobs, workDirectory, workerPath = mainWorker, contain } = options;
  const { jobId, attempt } = run;
  const directory = join(workDirectory, jobId);
  const assignment = await records.workers.findAssignment(jobId, attempt);
  const wanted = assignment === undefined ? [] : assignedBlobs(assignment);
  const inputs = await linkInputs(jobStorage(workDirectory, jobId), wanted, blobs, signal);
  const plain = { command: process.execPath, args: [workerPath], directory };
  const environment = processEnvironment(run, options);
  const supervised = { directory, environment, onStarted };
  if (contain === undefined) return runWorkerProcess({ ...plain, ...supervised }, signal);
  await using _socket = await openJobSocket(directory, { jobId, answer: options.answerWorker });
  const devices = assignment?.target.executionProvider === "cuda" ? await listGpuDevices() : [];
  return await runWorkerProcess(
    { ...contain({ ...plain, inputs, devices }), ...supervised },
    signal,
  );
}

/** Devices of NVIDIA's driver, which workers on a GPU open. */
async function listGpuDevices(): Promise<string[]> {
  const names = await readdir("/dev");
  return names.filter((name) => name.startsWith("nvidia")).map((name) => join("/dev", name));
}

/**
 * Makes the folder of the blobs that a job's worker reads: as links where the file system has them,
 * since models are large.
 * @returns the paths of what the worker reads
 */
async function linkInputs(
  directory: string,
  inputs: Iterable<string>,
  blobs: BlobStore,
  signal: AbortSignal,
): Promise<string[]> {
  await mkdir(directory, { recursive: true });
  const paths: string[] = [];
  for (const sha256 of inputs) {
    if ((await blobs.find(sha256)) === undefined) continue;
    const target = blobPath(directory, sha256);
    await mkdir(dirname(target), { recursive: true });
    await blobs.materialize(sha256, target, signal);
    paths.push(target);
  }
  return paths;
}

function processEnvironment(
  { jobId, secret }: LocalAttempt,
  { environment, workDirectory, serviceUrl, contain }: LaunchOptions,
): Record<string, string> {
  const directory = join(workDirectory, jobId);
  return {
    ...environment,
    // ONNX Runtime reports the models that it loads to its vendor unless this is set.
    ORT_DISABLE_TELEMETRY: "1",
    TMPDIR: directory,
    ...(contain === undefined
      ? { MOS_SERVICE_URL: serviceUrl }
      : { MOS_SERVICE_URL: "http://service", MOS_SERVICE_SOCKET: jobSocketName }),
    MOS_JOB_ID: jobId,
    MOS_JOB_TOKEN: secret,
    MOS_STORAGE_DIR: jobStorage(workDirectory, jobId),
    MOS_WORK_DIR: directory,
  };
}
