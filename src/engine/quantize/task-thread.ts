import { parentPort } from "node:worker_threads";
import type { ThreadMessage } from "./run-tasks.ts";
import { runWeightTask } from "./run-weight-task.ts";
import type { PlacedTask } from "./run-weight-task.ts";

/** Tells the progress that often, source bytes. */
const bytesBetweenMessages = 16 * 1024 * 1024;

function send(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

parentPort?.on("message", (placed: PlacedTask) => {
  const steps = runWeightTask(placed);
  let pending = 0;
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) {
      send({ kind: "bytes", bytes: pending });
      send({ kind: "result", result: step.value });
      return;
    }
    pending += step.value;
    if (pending >= bytesBetweenMessages) {
      send({ kind: "bytes", bytes: pending });
      pending = 0;
    }
  }
});
