import { once } from "node:events";
import { availableParallelism } from "node:os";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { at } from "../../onnx/at.ts";
import { fittingBytes } from "./run-fitted-task.ts";
import { runWeightTask } from "./run-weight-task.ts";
import type { ThreadMessage } from "./task-thread.ts";
import { defaultTileLimits } from "./tile-limits.ts";
import type { PlacedTask, RunTasksOptions, TaskResult } from "./weight-task.ts";

/** Source bytes below which threads are not worth their start, which takes some 40 ms. */
const minParallelBytes = 64 * 1024 * 1024;
const maxThreads = 16;

/** Runs all tasks, in threads if there is enough to do. @returns results in the tasks' order */
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

/** Runs a task in this thread, which turns to other work between tiles. */
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

/** Threads create few objects: all that is large is in buffers. */
const threadLimits = { maxYoungGenerationSizeMb: 2 } as const;
const threadModule = new URL("./task-thread.ts", import.meta.url);

/**
 * Runs tasks in that many threads, of which the calling one is one, within a memory budget: a
 * thread less saves the memory that its own copy of the engine takes.
 * @returns results in the tasks' order
 */
async function runInThreads(
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

/** Memory of all threads together, bytes. A task that needs more runs alone. */
const memoryBudget = 256 * 1024 * 1024;
/** Memory for tiles of the source, with their quantized values and parameters. */
const tileBytes = 16 * 1024 * 1024;

/** Gives out tasks to threads, the largest that fits the memory budget first. */
class TaskQueue {
  readonly #tasks: readonly PlacedTask[];
  /** Indices of tasks, the largest last. */
  readonly #waiting: number[];
  readonly #freed = new EventTarget();
  #reservedBytes = 0;

  constructor(tasks: readonly PlacedTask[]) {
    this.#tasks = tasks;
    const sourceBytes = (index: number) => at(tasks, index).task.sourceBytes;
    this.#waiting = [...tasks.keys()].sort((a, b) => sourceBytes(a) - sourceBytes(b));
  }

  /** Tasks for one thread, which asks for the next one when it has run the last one. */
  async *take(signal: AbortSignal): AsyncGenerator<[index: number, task: PlacedTask]> {
    while (this.#waiting.length > 0) {
      signal.throwIfAborted();
      const index = this.#removeNext();
      const task = index === undefined ? undefined : this.#tasks[index];
      if (index === undefined || task === undefined) {
        await once(this.#freed, "free", { signal });
        continue;
      }
      this.#reservedBytes += memoryBytes(task);
      yield [index, task];
      this.#reservedBytes -= memoryBytes(task);
      this.#freed.dispatchEvent(new Event("free"));
    }
  }

  #removeNext(): number | undefined {
    const position = this.#waiting.findLastIndex((index) => {
      const needed = this.#reservedBytes + memoryBytes(this.#tasks[index]);
      return this.#reservedBytes === 0 || needed <= memoryBudget;
    });
    return this.#waiting.splice(position, position === -1 ? 0 : 1)[0];
  }
}

/** Memory that a task takes at a time: tiles of its source, and results that wait to be written. */
function memoryBytes(placed: PlacedTask | undefined): number {
  if (placed === undefined) return 0;
  const { task } = placed;
  const fitting =
    task.kind === "blocks" && task.moments !== undefined ? fittingBytes(task.shape) : 0;
  return Math.min(task.resultBytes, defaultTileLimits.resultBytes) + tileBytes + fitting;
}
