import type { EvaluationWarning } from "./evaluation-warning.ts";
import type { OutputComparison } from "./output-comparison.ts";

/** Warns of outputs of the original with elements that cannot be compared, and why, if known. */
export function describeNotFiniteOutputs(
  comparisons: readonly OutputComparison[],
  cause: string | undefined,
): EvaluationWarning[] {
  return comparisons
    .filter(({ notFiniteElements }) => notFiniteElements > 0)
    .map(({ name, notFiniteElements, elements }) => {
      const share = `${notFiniteElements} of ${elements} elements`;
      const reason = cause === undefined ? "" : `; ${cause}`;
      const message = `Output "${name}" of the original is not finite in ${share}${reason}`;
      return { code: "output_not_finite", message };
    });
}

/** Whether no element of any output is finite, so that there is no figure to give. */
export function isNothingCompared(comparisons: readonly OutputComparison[]): boolean {
  return comparisons.every(
    ({ elements, notFiniteElements, sums }) =>
      elements > 0 && notFiniteElements === elements && !sums.notFinite,
  );
}
