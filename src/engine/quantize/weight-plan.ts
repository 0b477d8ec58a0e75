import type { Weight } from "./find-weights.ts";
import type { GraphRewrite } from "./graph-rewrite.ts";

/** A format that a weight can have, planned down to its size. */
export interface PlannedFormat {
  /** For the report, for instance `int8 with a scale for each slice of axis 0`. */
  readonly description: string;
  /** Bytes of all tensors that replace the weight. */
  readonly bytes: number;
  /** First version of the standard operator set that has the operators of the format. */
  readonly opset: number;
  readonly apply: (rewrite: GraphRewrite) => void;
}

/** What happens to one weight: it gets a format, or stays as it is for a reason. */
export interface WeightPlan {
  readonly weight: Weight;
  /** Bytes of the original. */
  readonly bytes: number;
  readonly format: PlannedFormat | undefined;
  /**
   * Why the weight stays as it is, or did not get the recipe's own scheme. The sentence starts with
   * the weight's name, which is not part of the text.
   */
  readonly reason: string | undefined;
}

/** What a scheme does to a model. */
export interface SchemePlan {
  readonly weights: readonly WeightPlan[];
  readonly apply: (rewrite: GraphRewrite) => void;
}
