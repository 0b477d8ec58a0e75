import type { Suite } from "../../contract/jobs/suite.ts";

/** In a table of batches: whether jobs fail gates. */
export function GatesCell({ gatesFailed }: Pick<Suite["newest"], "gatesFailed">) {
  if (gatesFailed === 0) return <td class="soft">none fails</td>;
  return <td class="bad">{gatesFailed} jobs fail</td>;
}
