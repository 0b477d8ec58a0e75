import type { KubernetesJob } from "../../../../src/kubernetes/resources.ts";
import type { StatusPatch } from "./transition-patch.ts";

/** Something to do about a CompressionJob. */
export type Action =
  | { readonly type: "writeStatus"; readonly patch: StatusPatch }
  /** Goes on only where no pod of the job may run any more, by what the API server says right now. */
  | { readonly type: "confirmStopped" }
  | { readonly type: "setFinalizer"; readonly present: boolean }
  | { readonly type: "createWorkerJob"; readonly manifest: KubernetesJob }
  | { readonly type: "deleteWorkerJob"; readonly name: string; readonly uid: string }
  | { readonly type: "setWorkerJobTtl"; readonly name: string; readonly seconds: number | null }
  | { readonly type: "deletePod"; readonly name: string; readonly uid: string }
  /** Takes a pod out of the cluster whose node does not say that it stopped. */
  | {
      readonly type: "removeLostPod";
      readonly name: string;
      readonly uid: string;
      readonly node: string;
    }
  | { readonly type: "deleteResource" }
  | {
      readonly type: "recordEvent";
      readonly warning: boolean;
      readonly reason: string;
      readonly message: string;
    };

/** What to do now, one after the other, and when to look again if nothing happens until then. */
export interface Decision {
  readonly actions: readonly Action[];
  /** Milliseconds since 1970. */
  readonly requeueAt?: number;
}

export const noActions: Decision = { actions: [] };

export function requeueAt(time: number): Decision {
  return { actions: [], requeueAt: time };
}

export function combineDecisions(...decisions: readonly Decision[]): Decision {
  const times = decisions.flatMap((decision) => decision.requeueAt ?? []);
  return {
    actions: decisions.flatMap(({ actions }) => actions),
    ...(times.length > 0 && { requeueAt: Math.min(...times) }),
  };
}
