import type { Weight } from "../find-weights.ts";
import type { MatrixShape } from "../kernels/block-format.ts";
import { weightDims } from "../weight-dims.ts";
import { findProductObstacle, isWeightTransposed } from "./replace-matrix-product.ts";

/** Shape of a matrix that products take as their second input, or why a weight is none. */
export function planMatrixShape(weight: Weight): MatrixShape | string {
  const [first = 0, second = 0] = weightDims(weight);
  const rank = weight.tensor.dims.length;
  if (rank !== 2) return `has ${rank} dimensions, and blocks are cut from matrices`;
  return (
    findProductObstacle(weight) ??
    (isWeightTransposed(weight)
      ? { order: "nk", k: second, n: first }
      : { order: "kn", k: first, n: second })
  );
}
