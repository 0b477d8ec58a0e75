import { spawn } from "node:child_process";
import { once } from "node:events";
import { keepTail } from "./keep-tail.ts";
import { readStartMark, stopProcessGroup } from "./process-group.ts";
import type { WorkerProcessExit } from "./worker-exit-error.ts";
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

  await superviseGroup(groupId, { exited, signal, onStarted: worker.onStarted });
  await closed;
  return { code: child.exitCode, signal: child.signalCode, lines: lines() };
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
