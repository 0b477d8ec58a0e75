import type { ChildPatch } from "./child-patch.ts";
import { listUnfinishedChildren } from "./list-unfinished-children.ts";
import type { ObservedBatchState } from "./observed-batch-state.ts";

/** `spec.cancel`, or `spec.failFast` after a failure: cancels all jobs. */
export function cancelPatches(observed: ObservedBatchState): ChildPatch[] {
  return listUnfinishedChildren(observed)
    .filter(({ spec }) => !spec.cancel)
    .map((child) => ({ child, spec: { cancel: true } }));
}
