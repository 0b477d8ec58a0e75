import { compareModels } from "./compare-models.ts";
import { describeStructure } from "./describe-model.ts";
import { describeGraph } from "../describe-graph.ts";
import type { WeightReport } from "../compression-report.ts";
import { openOriginal } from "../language/open-original.ts";
import { inlineFunctions } from "../onnx/inline-functions.ts";
import { openModel } from "../onnx/open-model.ts";
import { maxSqnrDb } from "../../contract/jobs/telemetry.ts";
import { type ModelGraphPart, modelGraphLimits } from "../../contract/jobs/model-graph.ts";
import {
  maxDistance,
  type ModelDiff,
  modelDiffLimits,
  showPart,
  type WeightChange,
} from "../../contract/jobs/model-diff.ts";

interface Compared {
  readonly originalPath: string;
  /** That the graph of a checkpoint was for. */
  readonly provider: "cpu" | "cuda";
  /** The result's ONNX file. */
  readonly resultPath: string;
  /** What was done to each of the original's weights. */
  readonly weights: readonly WeightReport[];
  /** Most bytes of the original. */
  readonly maxModelBytes: number;
  readonly signal: AbortSignal;
}

export interface ComparedResult {
  readonly changes: ModelDiff;
  /** The result's graph; undefined where it has more nodes than can be looked at. */
  readonly graph: ModelGraphPart | undefined;
}

/**
 * How a result differs from its original. No weight is read: what the compression measured of each
 * says how much it changed.
 */
export async function compareResult(compared: Compared): Promise<ComparedResult> {
  const { originalPath, provider, resultPath, weights, maxModelBytes, signal } = compared;
  const original = await openOriginal(originalPath, maxModelBytes, provider);
  inlineFunctions(original.proto);
  const result = await openModel(resultPath, Number.MAX_SAFE_INTEGER);
  const [before, after] = [
    await describeStructure(original, signal),
    await describeStructure(result, signal),
  ];
  const changes = weights.toSorted((a, b) => rank(b) - rank(a)).flatMap(describeChange);
  const diff = {
    ...compareModels(before, after),
    weights: {
      added: 0,
      removed: 0,
      changed: changes.length,
      renamed: 0,
      same: weights.length - changes.length,
    },
    weightChanges: changes.slice(0, modelDiffLimits.entries),
  };
  const { graph } = result.proto;
  const isShown = graph !== undefined && graph.node.length <= modelGraphLimits.nodes;
  return { changes: diff, graph: isShown ? describeGraph(graph, []) : undefined };
}

function describeChange({ name, dataType, shape, form, error }: WeightReport): WeightChange[] {
  if (form === null) return [];
  const before = showPart(`${dataType}[${shape.join(",")}]`);
  const distance = error === null ? null : relativeError(error.sqnrDb);
  return [{ how: "changed", name: showPart(name), before, after: showPart(form), distance }];
}

/** The noise's norm relative to the signal's, which the SQNR is the square of. */
function relativeError(sqnrDb: number): number | null {
  if (sqnrDb >= maxSqnrDb) return 0;
  const distance = 10 ** (-sqnrDb / 20);
  return distance <= maxDistance ? distance : null;
}

/** What is not rounded comes last. */
function rank({ error }: WeightReport): number {
  return error === null ? -1 : (relativeError(error.sqnrDb) ?? Infinity);
}
