import { conditionTypes } from "../../../../src/contract/condition.ts";
import { recordFinalizer } from "../../../../src/contract/resource-labels.ts";
import { isTerminal } from "../../../../src/contract/status.ts";
import { hasTrueCondition } from "../../../../src/resources/has-true-condition.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { Action, Decision } from "./decision.ts";

/** Keeps the resource until its logs and result are recorded. Comes before its first worker Job. */
export function addFinalizer(observed: ObservedState): readonly Action[] {
  return hasFinalizer(observed) ? [] : [{ type: "setFinalizer", present: true }];
}

/**
 * Releases the resource once its logs and result are recorded; undefined where that is done. Where
 * operator or service were uninstalled, a user releases it:
 * `kubectl patch compressionjob NAME --type=merge --patch '{"metadata":{"finalizers":null}}'`.
 */
export function removeFinalizer(observed: ObservedState): Decision | undefined {
  if (!hasFinalizer(observed)) return undefined;
  return { actions: [{ type: "setFinalizer", present: false }] };
}

export function isTerminalAndRecorded({ resource }: ObservedState): boolean {
  const { status, conditions } = resource.status;
  return isTerminal(status) && hasTrueCondition(conditions, conditionTypes.recorded);
}

function hasFinalizer({ resource }: ObservedState): boolean {
  return resource.metadata.finalizers?.includes(recordFinalizer) ?? false;
}
