import type { WeightFormat } from "./weight-format.ts";
import type { Weight } from "./find-weights.ts";

/** A format that a weight can have, planned down to its size. */
export type PlannedFormat = WeightFormat & {
  /** For the report, for instance `int8 with a scale for each slice of axis 0`. */
  readonly description: string;
  /** Bytes of all tensors that replace the weight. */
  readonly bytes: number;
  /** First version of the standard operator set that has the operators of the format. */
  readonly opset: number;
};

/** What happens to one weight: it gets a format, or stays as it is for a reason. */
export interface WeightPlan {
  readonly weight: Weight;
  readonly format: PlannedFormat | undefined;
  /**
   * Why the weight stays as it is, or did not get the recipe's own scheme. The sentence starts with
   * the weight's name, which is not part of the text.
   */
  readonly reason: string | undefined;
}
