import type { Destination } from "../../onnx/write-model.ts";
import type { WeightTask } from "./weight-task.ts";

/** A task and where its results go. */
export interface PlacedTask {
  readonly task: WeightTask;
  /** Destinations by payload index. */
  readonly destinations: ReadonlyMap<number, readonly Destination[]>;
}
