import { once } from "node:events";
import { availableParallelism } from "node:os";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { at } from "../../onnx/at.ts";
import { FetchedTasks } from "./fetched-tasks.ts";
import { type FittedWeight, fittingBytes } from "./run-fitted-task.ts";
import { runWeightTask } from "./run-weight-task.ts";
import type { ThreadMessage } from "./task-thread.ts";
import { defaultTileLimits } from "./tile-limits.ts";
import type { ModelTask, PlacedTask, RunTasksOptions, TaskResult } from "./weight-task.ts";

/** Source bytes below which threads are not worth their start, which takes some 40 ms. */
const minParallelBytes = 64 * 1024 * 1024;
const maxThreads = 16;
/** Fewer, since fetched tasks run in the order of the files without a budget of memory. */
const maxFetchingThreads = 8;

/** Runs all tasks, in threads if there is enough to do. @returns results in the tasks' order */
export async function runTasks(
  tasks: readonly PlacedTask[],
  options: RunTasksOptions,
): Promise<TaskResult[]> {
  const isRemote = options.remote !== undefined;
  const threads = countThreads(
    tasks.map(({ task }) => task),
    isRemote,
  );
  return runInThreads(tasks, threads, options);
}

/** Threads besides the calling one. */
function countThreads(tasks: readonly ModelTask[], isRemote: boolean): number {
  const bytes = tasks.reduce((sum, task) => sum + task.sourceBytes * workOf(task), 0);
  if (bytes < minParallelBytes) return 0;
  const threads = Math.min(maxThreads, availableParallelism(), tasks.length);
  // The calling thread is busy enough with what it fetches.
  return isRemote ? Math.min(threads, maxFetchingThreads) : Math.max(0, threads - 1);
}

/** Memory of a thread before it has a task, bytes: its heap and its copy of the engine. */
const threadBytes = 22 * 1024 * 1024;

/** Bytes of memory that running so many tasks adds to what a process has. */
export function forecastTaskMemory(tasks: readonly ModelTask[], isRemote: boolean): number {
  const threads = countThreads(tasks, isRemote);
  const needs = tasks.map(liveBytes).sort((a, b) => b - a);
  const atOnce = needs.slice(0, threads + 1).reduce((sum, bytes) => sum + bytes, 0);
  return threads * threadBytes + Math.min(atOnce, Math.max(memoryBudget, needs[0] ?? 0));
}

/** What a task has in memory at a time: a tile, and its results or those of the panel it is in. */
function liveBytes(task: ModelTask): number {
  const tile = Math.min(task.sourceBytes, 4 * defaultTileLimits.values);
  return tile + waitingBytes(task) + (isFitted(task) ? fittingBytes(task) : 0);
}

/** A panel of a `kn` matrix has all inputs of many outputs, any other is about a tile. */
function waitingBytes(task: ModelTask): number {
  const isDeep =
    (task.kind === "blocks" || task.kind === "rounded") &&
    task.shape.order === "kn" &&
    task.layout !== "columns";
  const most = isDeep ? defaultTileLimits.resultBytes : 4 * defaultTileLimits.values;
  return Math.min(task.resultBytes, most);
}

/** Work of a task's bytes, as a multiple of what rounding to nearest is. */
function workOf(task: ModelTask): number {
  return isFitted(task) ? fittingWork : 1;
}

const fittingWork = 16;

function isFitted(task: ModelTask): task is FittedWeight {
  return (task.kind === "blocks" || task.kind === "rounded") && task.moments !== undefined;
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
 * Runs tasks in that many threads and, unless it fetches for them, in the calling one: a thread less
 * saves the memory that its own copy of the engine takes.
 * @returns results in the tasks' order
 */
async function runInThreads(
  tasks: readonly PlacedTask[],
  threads: number,
  options: RunTasksOptions,
): Promise<TaskResult[]> {
  const results: TaskResult[] = [];
  const { remote } = options;
  const workers = Array.from({ length: threads }, startThread);
  const failure = new AbortController();
  const signal = AbortSignal.any([options.signal, failure.signal]);
  await using fetched = remote && new FetchedTasks(tasks, remote, signal);
  const queue = fetched ?? new TaskQueue(tasks, signal);
  const serve = async (run: (task: PlacedTask) => Promise<TaskResult>) => {
    for await (const [index, task] of queue.take()) {
      const result = await run(task);
      results[index] = result;
      options.onResult?.(index, result);
    }
  };
  const serving = [
    ...workers.map((worker) => serve((task) => runInThread(worker, task, { ...options, signal }))),
    ...(remote !== undefined && threads > 0
      ? []
      : [serve((task) => runInCallingThread(task, { ...options, signal }))]),
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
  readonly #signal: AbortSignal;
  #reservedBytes = 0;

  constructor(tasks: readonly PlacedTask[], signal: AbortSignal) {
    this.#tasks = tasks;
    this.#signal = signal;
    const sourceBytes = (index: number) => at(tasks, index).task.sourceBytes;
    this.#waiting = [...tasks.keys()].sort((a, b) => sourceBytes(a) - sourceBytes(b));
  }

  /** Tasks for one thread, which asks for the next one when it has run the last one. */
  async *take(): AsyncGenerator<[index: number, task: PlacedTask]> {
    const signal = this.#signal;
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
  const fitting = isFitted(task) ? fittingBytes(task) : 0;
  return Math.min(task.resultBytes, defaultTileLimits.resultBytes) + tileBytes + fitting;
}
