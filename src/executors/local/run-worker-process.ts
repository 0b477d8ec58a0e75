import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { constants, getPriority, setPriority } from "node:os";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { JobError } from "../../contract/errors.ts";
import { workerExit } from "../../contract/jobs/worker-exit.ts";
import type { ProcessIdentity } from "../../records/database/replica.ts";

/**
 * How long a stopped worker may take before it is killed, as one is whose thread is busy: with what
 * follows, a cancellation takes less than a second.
 */
const graceMs = 500;

export interface WorkerProcess {
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
export async function runWorkerProcess(
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
