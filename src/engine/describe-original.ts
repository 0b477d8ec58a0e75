import { describeGraph } from "./describe-graph.ts";
import { openOriginal } from "./language/open-original.ts";
import { inlineFunctions } from "./onnx/inline-functions.ts";
import { findWeights } from "./quantize/find-weights.ts";
import type { ModelGraphPart } from "../contract/jobs/model-graph.ts";

/**
 * A model's graph before any operator is fused, but with functions inlined. Its nodes name weights
 * by their positions among those of the report.
 * @param provider that the graph of a checkpoint is for
 * @throws ServiceError those of openOriginal
 */
export async function describeOriginal(
  modelPath: string,
  provider: "cpu" | "cuda",
  reported: readonly { readonly name: string }[],
  maxModelBytes: number,
): Promise<ModelGraphPart> {
  const model = await openOriginal(modelPath, maxModelBytes, provider);
  inlineFunctions(model.proto);
  const { graph } = model.proto;
  if (graph === undefined) throw new TypeError("A model without a graph was opened");
  // Weights of several graphs may have one name: their order is the report's.
  const positions = Map.groupBy(reported.keys(), (position) => reported[position]?.name);
  const weights = findWeights(model).flatMap((weight) => {
    const index = positions.get(weight.name)?.shift();
    return index === undefined ? [] : { ...weight, index };
  });
  return describeGraph(graph, weights);
}
