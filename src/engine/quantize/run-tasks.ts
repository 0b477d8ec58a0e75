import { setImmediate } from "node:timers/promises";
import { runWeightTask } from "./run-weight-task.ts";
import type { PlacedTask } from "./run-weight-task.ts";
import type { TaskResult } from "./weight-task.ts";

export interface RunTasksOptions {
  readonly signal: AbortSignal;
  /** Called with the source bytes that were done since the last call. */
  readonly onBytes: (bytes: number) => void;
}

/** Does all tasks and gives their results in the same order. */
export async function runTasks(tasks: readonly PlacedTask[], options: RunTasksOptions): Promise<TaskResult[]> {
  const results: TaskResult[] = [];
  for (const task of tasks) results.push(await runHere(task, options));
  return results;
}

async function runHere(task: PlacedTask, { signal, onBytes }: RunTasksOptions): Promise<TaskResult> {
  const steps = runWeightTask(task);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value;
    onBytes(step.value);
    await setImmediate();
    signal.throwIfAborted();
  }
}
