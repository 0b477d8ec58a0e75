import type { Job } from "../../../src/kubernetes/resources.ts";
import type { StatusPatch } from "./status-change.ts";

/** Something to do about a CompressionJob. */
export type Action =
  | { readonly type: "writeStatus"; readonly patch: StatusPatch }
  /** Goes on only where no pod of the job may run any more, by what the API server says right now. */
  | { readonly type: "confirmStopped" }
  | { readonly type: "setFinalizer"; readonly held: boolean }
  | { readonly type: "createJob"; readonly manifest: Job }
  | { readonly type: "deleteJob"; readonly name: string; readonly uid: string }
  | { readonly type: "setJobTtl"; readonly name: string; readonly seconds: number | null }
  | { readonly type: "deletePod"; readonly name: string; readonly uid: string }
  /** Takes a pod out of the cluster whose node does not say that it stopped. */
  | { readonly type: "removeLostPod"; readonly name: string; readonly uid: string; readonly node: string }
  | { readonly type: "deleteResource" }
  | { readonly type: "recordEvent"; readonly warning: boolean; readonly reason: string; readonly message: string };

/** What to do now, one after the other, and when to look again if nothing happens until then. */
export interface Decision {
  readonly actions: readonly Action[];
  /** Milliseconds since 1970. */
  readonly lookAgainAt?: number;
}

export const nothing: Decision = { actions: [] };

export function lookAgainAt(time: number): Decision {
  return { actions: [], lookAgainAt: time };
}

export function combine(...decisions: readonly Decision[]): Decision {
  const times = decisions.flatMap((decision) => decision.lookAgainAt ?? []);
  return {
    actions: decisions.flatMap(({ actions }) => actions),
    ...(times.length > 0 && { lookAgainAt: Math.min(...times) }),
  };
}
