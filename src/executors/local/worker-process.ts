import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { constants, getPriority, setPriority } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Contain } from "./containment.ts";
import { jobSocketName, openJobSocket } from "./job-socket.ts";
import type { JobError } from "../../contract/errors.ts";
import { workerExit } from "../../contract/worker-protocol/exit-codes.ts";
import { assignedBlobs } from "../../contract/worker-protocol/transfers.ts";
import type { ProcessIdentity } from "../../records/database/replica.ts";
import type { StartedAttempt } from "../../records/jobs/attempt-records.ts";
import type { Records } from "../../records/open-records.ts";
import type { BlobStore } from "../../storage/blob-store.ts";
import { blobPath } from "../../storage/directory-blob-store.ts";

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

/**
 * How long a stopped worker may take before it is killed, as one is whose thread is busy: with what
 * follows, a cancellation takes less than a second.
 */
const graceMs = 500;

interface WorkerProcess {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly directory: string;
  /** Must not reject: the worker would run on without supervision. */
  readonly onStarted: (identity: ProcessIdentity) => Promise<void>;
}

/**
 * Runs a worker in a process group of its own until no process of that group is left. Its stdin is
 * a pipe without data that closes when this process ends, and the worker with it. An aborted signal
 * stops the worker.
 */
async function runWorkerProcess(
  worker: WorkerProcess,
  signal: AbortSignal,
): Promise<WorkerProcessExit> {
  const child = spawn(worker.command, worker.args, {
    cwd: worker.directory,
    env: worker.environment,
    detached: true,
    stdio: ["pipe", "ignore", "pipe"],
  });
  const lines = keepTail(child.stderr);
  const closed = once(child, "close");
  const exited = once(child, "exit");
  // Both reject where the process cannot be started; only `exited` is awaited then.
  closed.catch(() => {});
  const groupId = child.pid;
  if (groupId === undefined) {
    await exited;
    throw new TypeError("A process without a pid exited");
  }
  yieldToService(groupId);

  await superviseGroup(groupId, { exited, signal, onStarted: worker.onStarted });
  await closed;
  return { code: child.exitCode, signal: child.signalCode, lines: lines() };
}

/** The service answers its callers also where workers keep every core busy. */
export function yieldToService(pid: number): void {
  const { PRIORITY_BELOW_NORMAL, PRIORITY_LOW } = constants.priority;
  setPriority(pid, Math.min(getPriority() + PRIORITY_BELOW_NORMAL, PRIORITY_LOW));
}

interface Supervision {
  /** Resolves when the first process of the group has exited. */
  readonly exited: Promise<unknown>;
  readonly signal: AbortSignal;
  readonly onStarted: WorkerProcess["onStarted"];
}

/** Resolves when no process of the group is left. */
async function superviseGroup(
  groupId: number,
  { exited, signal, onStarted }: Supervision,
): Promise<void> {
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= stopProcessGroup(groupId, graceMs);
  };
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  const startMark = await readStartMark(groupId);
  if (startMark !== undefined) await onStarted({ pid: groupId, startMark });
  await exited;
  signal.removeEventListener("abort", stop);
  await (stopping ?? stopProcessGroup(groupId, graceMs));
}

const maxTailBytes = 64 * 1024;
const maxTailLines = 200;

/** Keeps the end of a process' output. The returned function gives its lines. */
function keepTail(stream: Readable): () => string[] {
  let tail = Buffer.alloc(0);
  let cut = false;
  stream.on("data", (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]);
    if (tail.length <= maxTailBytes) return;
    tail = tail.subarray(tail.length - maxTailBytes);
    cut = true;
  });
  return () => {
    const lines = tail.toString("utf8").split(/\r?\n/);
    if (lines.at(-1) === "") lines.pop();
    const kept = (cut ? lines.slice(1) : lines).slice(-maxTailLines);
    return kept.length < lines.length
      ? ["(earlier output of the worker was dropped)", ...kept]
      : kept;
  };
}

const run = promisify(execFile);
const checkEveryMs = 20;

/**
 * Start time of a process, unique among processes with its pid; undefined where it does not run.
 */
export async function readStartMark(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") {
    const listed = await run("ps", ["-o", "lstart=", "-p", String(pid)]).catch(() => ({
      stdout: "",
    }));
    return listed.stdout.trim() || undefined;
  }
  const stat = await readProcessStat(String(pid));
  if (stat === undefined || stat.state === "Z") return undefined;
  const bootId = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  return `${bootId.trim()}:${stat.startTicks}`;
}

/**
 * Terminates a process group, kills it after the grace time, and resolves when no process is left.
 */
export async function stopProcessGroup(groupId: number, graceMs: number): Promise<void> {
  const killAt = performance.now() + graceMs;
  signalGroup(groupId, "SIGTERM");
  while (await isGroupAlive(groupId)) {
    if (performance.now() >= killAt) signalGroup(groupId, "SIGKILL");
    await delay(checkEveryMs);
  }
}

async function isGroupAlive(groupId: number): Promise<boolean> {
  if (!signalGroup(groupId, 0)) return false;
  if (process.platform !== "linux") return true;
  // Zombies that are not reaped, as in containers without an init, accept signals but do not run.
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map(readProcessStat));
  return stats.some((stat) => stat?.groupId === groupId && stat.state !== "Z");
}

/** False where the group has no process. */
function signalGroup(groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-groupId, signal);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

async function readProcessStat(pid: string) {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  // The name, in parentheses, may itself contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0], groupId: Number(fields[2]), startTicks: fields[19] };
}

const crashSignals: ReadonlySet<string> = new Set([
  "SIGABRT",
  "SIGBUS",
  "SIGFPE",
  "SIGILL",
  "SIGSEGV",
  "SIGSYS",
  "SIGTRAP",
]);
const outOfMemoryMarkers = ["JavaScript heap out of memory", "std::bad_alloc"];

/** How a worker's process ended. */
export interface WorkerProcessExit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The last lines of its stderr. */
  readonly lines: string[];
}

/** The error of a job whose worker ended without a result. */
export function workerExitError({ code, signal, lines }: WorkerProcessExit): JobError {
  if (lines.some((line) => outOfMemoryMarkers.some((marker) => line.includes(marker)))) {
    return { code: "out_of_memory", message: "The worker ran out of memory" };
  }
  if (signal !== null) return signalError(signal);
  if (code === workerExit.cancelled) {
    return { code: "worker_killed", message: "The worker was stopped from outside the service" };
  }
  const message = `The worker exited with code ${code} before it reported a result`;
  return { code: "worker_crashed", message };
}

function signalError(signal: string): JobError {
  if (crashSignals.has(signal)) {
    return { code: "worker_crashed", message: `The worker crashed with ${signal}` };
  }
  const hint = signal === "SIGKILL" ? ": the machine may have run out of memory" : "";
  return { code: "worker_killed", message: `The worker was killed by ${signal}${hint}` };
}
