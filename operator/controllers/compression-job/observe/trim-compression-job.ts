import { conditionTypes } from "../../../../src/contract/custom-resources/condition.ts";
import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import type { Stored } from "../../../../src/kubernetes/resources.ts";
import type { CompressionJobObject } from "../../../../src/resources/custom-resources.ts";

/**
 * What a cache keeps of a CompressionJob: all but the result, on which no decision depends, and of
 * one that has ended no history either.
 */
export function trimCompressionJob({
  status,
  ...object
}: Stored<CompressionJobObject>): Stored<CompressionJobObject> {
  if (status === undefined) return object;
  const { telemetry: _, artifacts: __, ...trimmedStatus } = status;
  if (!isTerminal(status.status)) return { ...object, status: trimmedStatus };
  const { transitions: ___, conditions, ...ended } = trimmedStatus;
  const recorded = conditions?.filter(({ type }) => type === conditionTypes.recorded) ?? [];
  return { ...object, status: { ...ended, conditions: recorded } };
}
