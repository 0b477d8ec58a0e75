import { conditionTypes } from "../../../src/contract/custom-resources/condition.ts";
import type { BatchObject } from "../../../src/resources/custom-resources.ts";
import { hasTrueCondition } from "../../../src/resources/has-true-condition.ts";
import type { ChildPatch } from "./child-patch.ts";
import { listUnfinishedChildren } from "./list-unfinished-children.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

/** `spec.suspend`: only a batch that was suspended resumes jobs that a user suspended. */
export function suspendPatches(observed: ObservedBatchState): ChildPatch[] {
  const { suspend } = observed.batch.spec;
  if (!suspend && !wasSuspended(observed.batch)) return [];
  return listUnfinishedChildren(observed)
    .filter(({ spec }) => spec.suspend !== suspend)
    .map((child) => ({ child, spec: { suspend } }));
}

/** Whether the status has the batch as suspended, or as not completely resumed. */
export function wasSuspended({ status }: BatchObject): boolean {
  return hasTrueCondition(status?.conditions, conditionTypes.suspended);
}
