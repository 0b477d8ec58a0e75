import type { OnnxModel } from "../../onnx/onnx-model.ts";
import type { WeightTask } from "./weight-task.ts";

/** Indices of the payloads that a task computes. */
export function outputPayloads({ outputs }: WeightTask): number[] {
  return Object.values(outputs).filter((payload) => typeof payload === "number");
}

/** Bytes of each payload that a task computes. */
export function outputLengths(model: OnnxModel, task: WeightTask): number[] {
  return outputPayloads(task).map((payload) => payloadLength(model, payload));
}

export function payloadLength({ payloads }: OnnxModel, payload: number): number {
  const length = payloads[payload]?.length;
  if (length === undefined) throw new TypeError(`There is no payload ${payload}`);
  return length;
}
