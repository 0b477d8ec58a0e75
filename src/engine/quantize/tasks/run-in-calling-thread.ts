import { setImmediate } from "node:timers/promises";
import type { PlacedTask } from "./placed-task.ts";
import type { RunTasksOptions } from "./run-tasks-options.ts";
import { runWeightTask } from "./run-weight-task.ts";
import type { TaskResult } from "./weight-task.ts";

/** Runs a task in this thread, which turns to other work between tiles. */
export async function runInCallingThread(
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
