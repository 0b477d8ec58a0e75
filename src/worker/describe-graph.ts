import { replaceHiddenCharacters } from "../contract/text/hidden-characters.ts";
import { type ModelGraph, modelGraphLimits } from "../contract/jobs/model-graph.ts";
import { truncate } from "../contract/text/bounded-text.ts";
import type { CompressionReport } from "../engine/compression-report.ts";

/** Content of `graph.json`. */
export function describeGraph({
  nodes,
  weights,
}: Pick<CompressionReport, "nodes" | "weights">): ModelGraph {
  return {
    nodes: nodes.map(({ name, opType, inputs, weights: positions }) => ({
      name: shownName(name),
      opType: shownName(opType),
      inputs: [...inputs],
      weights: [...positions],
    })),
    weights: weights.map(({ name, originalBytes, resultBytes, form, reason, error }) => ({
      name: shownName(name),
      originalBytes,
      resultBytes,
      form,
      reason,
      sqnrDb: error?.sqnrDb ?? null,
    })),
  };
}

function shownName(name: string): string {
  return truncate(replaceHiddenCharacters(name), modelGraphLimits.name);
}
