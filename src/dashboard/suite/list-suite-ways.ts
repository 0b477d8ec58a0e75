import type { SuiteHistory } from "../../contract/batches/suite.ts";
import { describeBasis, type MeasuredJob } from "../shared/accuracy-basis.ts";

interface ShownHistory {
  readonly batches: readonly Pick<SuiteHistory["batches"][number], "id">[];
  readonly jobs: readonly (MeasuredJob & Pick<SuiteHistory["jobs"][number], "batchId">)[];
}

/** In which ways the accuracy of the batches' jobs was measured; none where it is one. */
export function listSuiteWays({ batches, jobs }: ShownHistory): string[] {
  const shown = new Set(batches.map(({ id }) => id));
  const ofShown = jobs.filter(({ batchId }) => batchId !== null && shown.has(batchId));
  const bases = new Set(ofShown.flatMap(({ accuracyBasis }) => accuracyBasis ?? []));
  return bases.size < 2 ? [] : [...bases].map(describeBasis);
}
