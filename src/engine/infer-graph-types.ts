import { openOriginal } from "./language/open-original.ts";
import { inlineFunctions } from "./onnx/inline-functions.ts";
import { inferTypes, type ValueDescription } from "./pipeline/describe-values.ts";
import { weightlessModel } from "./pipeline/weightless-model.ts";
import type { ProbeOptions } from "./pipeline/with-probe-session.ts";
import { ServiceError } from "../contract/errors.ts";
import type { ModelGraphPart } from "../contract/jobs/model-graph.ts";

/**
 * Fills in the types that a model does not say of its nodes' outputs, as the runtime infers them;
 * of subgraphs it says nothing. What it cannot infer stays unknown.
 */
export async function inferGraphTypes(
  graph: ModelGraphPart,
  modelPath: string,
  provider: "cpu" | "cuda",
  options: ProbeOptions,
): Promise<ModelGraphPart> {
  const given = new Set(graph.nodes.flatMap(({ outputs }) => outputs));
  const unknown = graph.values.filter(({ type }, index) => type === null && given.has(index));
  if (unknown.length === 0) return graph;
  const names = new Set(unknown.map(({ name }) => name));
  try {
    const model = await openOriginal(modelPath, Number.MAX_SAFE_INTEGER, provider);
    inlineFunctions(model.proto);
    const types = await inferTypes(weightlessModel(model), [...names], options);
    const values = graph.values.map((value) => {
      const type = names.has(value.name) ? types.get(value.name) : undefined;
      return type === undefined ? value : { ...value, type: describe(type) };
    });
    return { ...graph, values };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return graph;
  }
}

/** The runtime gives no dimensions both for a scalar and where it could not infer the rank. */
function describe({ type, shape }: Pick<ValueDescription, "type" | "shape">): string {
  const dims = shape.map((size) => (size === "" ? "?" : String(size)));
  return `${type}[${dims.length === 0 ? "…" : dims.join(",")}]`;
}
