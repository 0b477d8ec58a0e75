import { availableParallelism } from "node:os";
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { runWeightTask } from "./run-weight-task.ts";
import type { PlacedTask } from "./run-weight-task.ts";
import type { TaskResult } from "./weight-task.ts";

/** Work that is not worth starting threads for, source bytes. A thread takes some 40 ms to start. */
const minParallelBytes = 64 * 1024 * 1024;
/** What all threads may hold at a time, bytes; a task that needs more runs alone. */
const memoryBudget = 256 * 1024 * 1024;
const maxThreads = 16;

/** Threads make few objects: all that is large is in buffers. */
const threadLimits = { maxYoungGenerationSizeMb: 2 } as const;
const threadModule = new URL("./task-thread.ts", import.meta.url);

export interface RunTasksOptions {
  readonly signal: AbortSignal;
  /** Called with the source bytes that were done since the last call. */
  readonly onBytes: (bytes: number) => void;
}

/** What a thread tells: source bytes done, or the result of the task it was given. */
export type ThreadMessage =
  | { readonly kind: "bytes"; readonly bytes: number }
  | { readonly kind: "result"; readonly result: TaskResult };

/** Does all tasks, in threads where there is enough to do, and gives their results in the same order. */
export async function runTasks(
  tasks: readonly PlacedTask[],
  options: RunTasksOptions,
): Promise<TaskResult[]> {
  const bytes = tasks.reduce((sum, { task }) => sum + task.sourceBytes, 0);
  const threads = Math.min(maxThreads, availableParallelism(), tasks.length);
  if (threads > 1 && bytes >= minParallelBytes) return runInThreads(tasks, threads, options);
  const results: TaskResult[] = [];
  for (const task of tasks) results.push(await runInCallingThread(task, options));
  return results;
}

async function runInCallingThread(
  task: PlacedTask,
  { signal, onBytes }: RunTasksOptions,
): Promise<TaskResult> {
  const steps = runWeightTask(task);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value;
    onBytes(step.value);
    await setImmediate();
    signal.throwIfAborted();
  }
}

/** Gives each free thread the largest task that fits the memory budget beside those that run. */
async function runInThreads(
  tasks: readonly PlacedTask[],
  count: number,
  options: RunTasksOptions,
): Promise<TaskResult[]> {
  const results: TaskResult[] = [];
  const waiting = [...tasks.keys()].sort((a, b) => memoryBytes(tasks[a]) - memoryBytes(tasks[b]));
  const workers = Array.from(
    { length: count },
    () => new Worker(threadModule, { resourceLimits: threadLimits }),
  );
  const freed = new EventTarget();
  let reservedBytes = 0;
  const takeNext = () => {
    const position = waiting.findLastIndex(
      (index) => reservedBytes === 0 || reservedBytes + memoryBytes(tasks[index]) <= memoryBudget,
    );
    return waiting.splice(position, position === -1 ? 0 : 1)[0];
  };
  const serveThread = async (worker: Worker) => {
    while (waiting.length > 0) {
      options.signal.throwIfAborted();
      const index = takeNext();
      const task = index === undefined ? undefined : tasks[index];
      if (index === undefined || task === undefined) {
        await once(freed, "free", { signal: options.signal });
        continue;
      }
      reservedBytes += memoryBytes(task);
      results[index] = await runInThread(worker, task, options);
      reservedBytes -= memoryBytes(task);
      freed.dispatchEvent(new Event("free"));
    }
  };
  try {
    await Promise.all(workers.map(serveThread));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
  return results;
}

function runInThread(
  worker: Worker,
  task: PlacedTask,
  { signal, onBytes }: RunTasksOptions,
): Promise<TaskResult> {
  const { promise, resolve, reject } = Promise.withResolvers<TaskResult>();
  const onMessage = (message: ThreadMessage) => {
    if (message.kind === "bytes") onBytes(message.bytes);
    else resolve(message.result);
  };
  const onExit = (code: number) =>
    reject(new Error(`A thread ended with exit code ${code} while it compressed a weight`));
  const onAbort = () => reject(signal.reason);
  worker.on("message", onMessage).on("error", reject).on("exit", onExit);
  signal.addEventListener("abort", onAbort, { once: true });
  worker.postMessage(task);
  return promise.finally(() => {
    worker.off("message", onMessage).off("error", reject).off("exit", onExit);
    signal.removeEventListener("abort", onAbort);
  });
}

/** Bytes that a task may hold at a time: the whole result, and a tile of the source. */
function memoryBytes(placed: PlacedTask | undefined): number {
  return placed === undefined ? 0 : placed.task.resultBytes + tileBytes;
}

const tileBytes = 16 * 1024 * 1024;
