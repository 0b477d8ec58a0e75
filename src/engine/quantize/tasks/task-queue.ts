import { once } from "node:events";
import type { PlacedTask } from "./placed-task.ts";
import { defaultTileLimits } from "./tile-limits.ts";

/** Memory of all threads together, bytes. A task that needs more runs alone. */
const memoryBudget = 256 * 1024 * 1024;
/** Memory for tiles of the source, with their quantized values and parameters. */
const tileBytes = 16 * 1024 * 1024;

/** Gives out tasks to threads, the largest that fits the memory budget first. */
export class TaskQueue {
  readonly #tasks: readonly PlacedTask[];
  /** Indices of tasks, the largest last. */
  readonly #waiting: number[];
  readonly #freed = new EventTarget();
  #reservedBytes = 0;

  constructor(tasks: readonly PlacedTask[]) {
    this.#tasks = tasks;
    const sourceBytes = (index: number) => tasks[index]?.task.sourceBytes ?? 0;
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
  return Math.min(placed.task.resultBytes, defaultTileLimits.resultBytes) + tileBytes;
}
