import { at } from "../../onnx/at.ts";
import type { GraphProto } from "../../onnx/onnx_pb.js";
import { countElements } from "../../onnx/tensor-shape.ts";
import { isAttributeSet } from "../channel-axis.ts";
import { type Weight, weightDims } from "../find-weights.ts";
import type { PlanRevision } from "../plan-revision.ts";
import type { WeightPlan } from "../weight-plan.ts";
import { isAffine, isHalf, type WeightFormat } from "../weight-format.ts";
import { requireProductMatrix } from "./consumer-matrix.ts";

/** The input of all products that take a weight, and how the weight lies along it. */
export interface SmoothedInput {
  readonly name: string;
  /** Values of one of its rows. */
  readonly inputs: number;
  /** Values of the weight for each of them. */
  readonly inner: number;
}

/** The one input that a weight is multiplied by in integers; undefined where it is used otherwise. */
export function findSmoothedInput(
  weight: Weight,
  format: WeightFormat | undefined,
  graph: GraphProto | undefined,
): SmoothedInput | undefined {
  const isMultiplied = format?.operations.every((operation) => operation === "integer-product");
  if (isMultiplied !== true) return undefined;
  const dims = weightDims(weight);
  const axes = new Map<string, number>();
  for (const consumer of weight.consumers) {
    const { node, scope } = consumer;
    const { k } = requireProductMatrix(consumer);
    const isWhole = k.size === dims[k.source] && !isAttributeSet(node, "transA");
    const name = at(node.input, 0);
    if (!isWhole || scope.body !== graph) return undefined;
    if ((axes.get(name) ?? k.source) !== k.source) return undefined;
    axes.set(name, k.source);
  }
  const [found, ...others] = axes;
  if (found === undefined || others.length > 0) return undefined;
  const [name, axis] = found;
  return { name, inputs: at(dims, axis), inner: countElements(dims.slice(axis + 1)) };
}

export function isSmoothed(format: WeightFormat | undefined): boolean {
  return format !== undefined && "inputScales" in format.storage;
}

/** A plan whose weight is multiplied by the scales that are known of its input. */
export function smoothPlan(
  plan: WeightPlan,
  inputScales: PlanRevision["inputScales"],
  graph: GraphProto | undefined,
): WeightPlan {
  const { weight, format } = plan;
  if (format === undefined || isHalf(format) || !isAffine(format)) return plan;
  const input = findSmoothedInput(weight, format, graph);
  const scales = input && inputScales.get(input.name);
  if (input === undefined || scales === undefined) return plan;
  const storage = { ...format.storage, inputScales: { scales, inner: input.inner } };
  return {
    ...plan,
    format: { ...format, storage, description: `${format.description}, smoothed` },
  };
}
