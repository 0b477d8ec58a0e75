import { listCompressionWarnings, type CompressionWarning } from "./compression-warnings.ts";
import { errorMetrics, type ErrorMetrics } from "./evaluate/error-metrics.ts";
import type { ErrorSums } from "./evaluate/error-sums.ts";
import { elementTypeName } from "./onnx/element-type.ts";
import type { WrittenFile } from "./onnx/write-model.ts";
import type { GraphNode } from "./list-graph-nodes.ts";
import type { CompressionPlan } from "./plan-compression.ts";
import type { TaskResult } from "./quantize/tasks/weight-task.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";

export interface WeightReport {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dataType: string;
  readonly originalBytes: number;
  readonly resultBytes: number;
  /** Operators that use the weight. */
  readonly usedBy: readonly string[];
  /** The form of the weight in the result; null where it does not change. */
  readonly form: string | null;
  /** Why the weight does not change or does not get the recipe's own scheme. */
  readonly reason: string | null;
  /** Difference of the weight's new form from the original; null where it does not change. */
  readonly error: ErrorMetrics | null;
}

export interface CompressionReport {
  /** The result's files, the ONNX file first. */
  readonly files: readonly WrittenFile[];
  readonly originalBytes: number;
  readonly resultBytes: number;
  readonly shards: number;
  readonly weights: readonly WeightReport[];
  /** The original's nodes, which name weights by their positions. */
  readonly nodes: readonly GraphNode[];
  readonly warnings: readonly CompressionWarning[];
}

export function buildCompressionReport(
  plan: CompressionPlan,
  files: readonly WrittenFile[],
  results: readonly TaskResult[],
): CompressionReport {
  const sums = new Map(results.map((result) => [result.weight, result.sums]));
  return {
    files,
    originalBytes: plan.originalBytes,
    resultBytes: plan.resultBytes,
    shards: plan.shards.count,
    weights: plan.weights.map((weight) => reportWeight(weight, sums.get(weight.weight.index))),
    nodes: plan.nodes,
    warnings: listCompressionWarnings(plan),
  };
}

function reportWeight(
  { weight, format, reason }: WeightPlan,
  error: ErrorSums | undefined,
): WeightReport {
  return {
    name: weight.name,
    shape: weight.tensor.dims.map(Number),
    dataType: elementTypeName(weight.tensor.dataType),
    originalBytes: weight.bytes,
    resultBytes: format?.bytes ?? weight.bytes,
    usedBy: [...new Set(weight.consumers.map(({ node }) => node.opType))],
    form: format?.description ?? null,
    reason: reason ?? null,
    error: error === undefined ? null : errorMetrics(error),
  };
}
