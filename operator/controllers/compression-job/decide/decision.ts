import type { CompressionJobStatus } from "../../../../src/contract/custom-resources/compression-job.ts";
import type { EventReason } from "../../../../src/contract/custom-resources/event-reasons.ts";
import type { StatusReason } from "../../../../src/contract/jobs/status-reasons.ts";
import type { KubernetesJob } from "../../../../src/kubernetes/resources.ts";
import type { PascalCase } from "./pascal-case.ts";

/** Fields of a status to write; lists are complete. */
export type StatusPatch = Partial<CompressionJobStatus>;

/** Something to do about a CompressionJob. */
export type Action =
  | { readonly type: "writeStatus"; readonly patch: StatusPatch }
  /** Continues only if the API server, not a cache, confirms that no pod of the job may run. */
  | { readonly type: "confirmStopped" }
  | { readonly type: "setFinalizer"; readonly present: boolean }
  | { readonly type: "createWorkerJob"; readonly manifest: KubernetesJob }
  | { readonly type: "deleteWorkerJob"; readonly name: string; readonly uid: string }
  /** Fails a worker Job that has not ended. It stays, with the logs of its pods. */
  | { readonly type: "endWorkerJob"; readonly name: string }
  /** Changes a worker Job, so that Kubernetes' Job controller syncs it. */
  | { readonly type: "requestSync"; readonly name: string; readonly at: number }
  | { readonly type: "deletePod"; readonly name: string; readonly uid: string }
  /** Observes which nodes of the job's pods report, and decides again. */
  | { readonly type: "observeNodes" }
  /** Removes a pod whose node does not confirm that it stopped. */
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
      readonly reason: EventReason | PascalCase<StatusReason>;
      readonly message: string;
    };

/** What to do now, in order, and when to reconcile again if nothing changes until then. */
export interface Decision {
  readonly actions: readonly Action[];
  /** Milliseconds since 1970. */
  readonly requeueAt?: number | undefined;
}

export const noActions: Decision = { actions: [] };

export function requeueAt(time: number): Decision {
  return { actions: [], requeueAt: time };
}

/** All actions, and the earliest time. */
export function combineDecisions(...decisions: readonly Decision[]): Decision {
  const times = decisions.flatMap((decision) => decision.requeueAt ?? []);
  return {
    actions: decisions.flatMap(({ actions }) => actions),
    requeueAt: times.length > 0 ? Math.min(...times) : undefined,
  };
}
