import { OutputWriter } from "./output-writer.ts";
import type { PlacedTask } from "./placed-task.ts";
import { runAffineTask } from "./run-affine-task.ts";
import { runBlockTask } from "./run-block-task.ts";
import { runHalfTask } from "./run-half-task.ts";
import { defaultTileLimits } from "./tile-limits.ts";
import type { TaskResult } from "./weight-task.ts";

/** Runs a task tile by tile. Yields the source bytes of each tile, so that callers can stop it. */
export function* runWeightTask(
  { task, destinations }: PlacedTask,
  limits = defaultTileLimits,
): Generator<number, TaskResult> {
  using output = new OutputWriter(destinations);
  switch (task.kind) {
    case "linear":
      return yield* runAffineTask(task, output, limits);
    case "blocks":
      return yield* runBlockTask(task, output, limits);
    case "half":
      return yield* runHalfTask(task, output, limits);
  }
}
