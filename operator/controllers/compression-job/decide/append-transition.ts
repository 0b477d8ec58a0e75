import type { CompressionJobStatus } from "../../../../src/contract/compression-job.ts";
import { statusLimits } from "../../../../src/contract/resource-status.ts";

type Transitions = NonNullable<CompressionJobStatus["transitions"]>;

/** The last transitions of a status and this one. */
export function appendTransition(
  { transitions = [] }: CompressionJobStatus,
  transition: Transitions[number],
): Transitions {
  return [...transitions, transition].slice(-statusLimits.transitions);
}
