import { Worker } from "node:worker_threads";
import type { PlacedTask } from "./placed-task.ts";
import { runInCallingThread } from "./run-in-calling-thread.ts";
import type { RunTasksOptions } from "./run-tasks-options.ts";
import { TaskQueue } from "./task-queue.ts";
import type { ThreadMessage } from "./thread-message.ts";
import type { TaskResult } from "./weight-task.ts";

/** Threads create few objects: all that is large is in buffers. */
const threadLimits = { maxYoungGenerationSizeMb: 2 } as const;
const threadModule = new URL("./task-thread.ts", import.meta.url);

/**
 * Runs tasks in that many threads, of which the calling one is one, within a memory budget: a
 * thread less saves the memory that its own copy of the engine takes.
 * @returns results in the tasks' order
 */
export async function runInThreads(
  tasks: readonly PlacedTask[],
  threads: number,
  options: RunTasksOptions,
): Promise<TaskResult[]> {
  const results: TaskResult[] = [];
  const queue = new TaskQueue(tasks);
  const workers = Array.from({ length: threads - 1 }, startThread);
  const failure = new AbortController();
  const signal = AbortSignal.any([options.signal, failure.signal]);
  const serve = async (run: (task: PlacedTask) => Promise<TaskResult>) => {
    for await (const [index, task] of queue.take(signal)) results[index] = await run(task);
  };
  const serving = [
    ...workers.map((worker) => serve((task) => runInThread(worker, task, { ...options, signal }))),
    serve((task) => runInCallingThread(task, { ...options, signal })),
  ];
  try {
    await Promise.all(serving);
  } finally {
    failure.abort();
    await Promise.all(workers.map((worker) => worker.terminate()));
    await Promise.allSettled(serving);
  }
  return results;
}

function startThread(): Worker {
  return new Worker(threadModule, { resourceLimits: threadLimits });
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
