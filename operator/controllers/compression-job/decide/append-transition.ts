import type { CompressionJobStatus } from "../../../../src/contract/custom-resources/compression-job.ts";
import { statusLimits } from "../../../../src/contract/custom-resources/api-group.ts";

type Transitions = NonNullable<CompressionJobStatus["transitions"]>;

/** The last transitions of a status and this one. */
export function appendTransition(
  { transitions = [] }: CompressionJobStatus,
  transition: Transitions[number],
): Transitions {
  return [...transitions, transition].slice(-statusLimits.transitions);
}
