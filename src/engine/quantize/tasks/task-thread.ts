import { parentPort } from "node:worker_threads";
import type { PlacedTask } from "./weight-task.ts";
import { runWeightTask } from "./run-weight-task.ts";
import type { TaskResult } from "./weight-task.ts";

/** Source bytes between two reports of progress. */
const bytesBetweenMessages = 16 * 1024 * 1024;

function postToParent(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

parentPort?.on("message", (placed: PlacedTask) => {
  const steps = runWeightTask(placed);
  let pending = 0;
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) {
      postToParent({ kind: "bytes", bytes: pending });
      postToParent({ kind: "result", result: step.value });
      return;
    }
    pending += step.value;
    if (pending >= bytesBetweenMessages) {
      postToParent({ kind: "bytes", bytes: pending });
      pending = 0;
    }
  }
});

/** What a thread reports: source bytes done, or the result of its task. */
export type ThreadMessage =
  | { readonly kind: "bytes"; readonly bytes: number }
  | { readonly kind: "result"; readonly result: TaskResult };
