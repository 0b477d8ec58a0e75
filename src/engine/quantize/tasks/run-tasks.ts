import { availableParallelism } from "node:os";
import type { PlacedTask } from "./placed-task.ts";
import { runInCallingThread } from "./run-in-calling-thread.ts";
import { runInThreads } from "./run-in-threads.ts";
import type { RunTasksOptions } from "./run-tasks-options.ts";
import type { TaskResult } from "./weight-task.ts";

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
