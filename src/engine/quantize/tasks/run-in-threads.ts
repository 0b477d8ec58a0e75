import { Worker } from "node:worker_threads";
import type { PlacedTask } from "./placed-task.ts";
import type { RunTasksOptions } from "./run-tasks-options.ts";
import { TaskQueue } from "./task-queue.ts";
import type { ThreadMessage } from "./thread-message.ts";
import type { TaskResult } from "./weight-task.ts";

/** Threads create few objects: all that is large is in buffers. */
const threadLimits = { maxYoungGenerationSizeMb: 2 } as const;
const threadModule = new URL("./task-thread.ts", import.meta.url);

/** Runs tasks in that many threads within a memory budget. @returns results in the tasks' order */
export async function runInThreads(
  tasks: readonly PlacedTask[],
  threads: number,
  options: RunTasksOptions,
): Promise<TaskResult[]> {
  const results: TaskResult[] = [];
  const queue = new TaskQueue(tasks);
  const workers = Array.from(
    { length: threads },
    () => new Worker(threadModule, { resourceLimits: threadLimits }),
  );
  const serveThread = async (worker: Worker) => {
    for await (const [index, task] of queue.take(options.signal)) {
      results[index] = await runInThread(worker, task, options);
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
