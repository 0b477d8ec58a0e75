import { isTerminal } from "../../../src/contract/jobs/status.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

export function listUnfinishedChildren({
  children,
}: ObservedBatchState): Stored<CompressionJobObject>[] {
  return [...children.values()].filter(
    ({ status }) => status === undefined || !isTerminal(status.status),
  );
}
