import type { ErrorCode } from "../errors.ts";
import { listCodes } from "../text/describe-choices.ts";
import type { JobStatus } from "./status.ts";

interface StatusReasonEntry {
  /** The status that a job has for this reason. */
  readonly status: JobStatus;
  /** The same for people, where nothing more specific is known. */
  readonly message: string;
  /** Who sets it: the service, also from what a worker reports, or the operator. */
  readonly setBy: "service" | "operator" | "service, operator";
  /** What a user does about it. */
  readonly action: string;
}

const nothing = "Nothing.";

/**
 * Every reason for which a job can be in its status. Reasons of the status Failed are error codes.
 */
export const statusReasonTable = {
  queued: {
    status: "Pending",
    message: "Waiting for a worker",
    setBy: "service",
    action: "Nothing: the job starts when a worker is free. `MOS_WORKERS` allows more at once.",
  },
  interrupted: {
    status: "Pending",
    message: "Preempted by a project that had waited too long; it will start over",
    setBy: "service",
    action:
      "Nothing: the job starts again in its turn. With `MOS_WORKERS` of 2 or more no project has " +
      "all workers.",
  },
  not_submitted: {
    status: "Pending",
    message: "The cluster does not take the job yet",
    setBy: "service",
    action:
      "Read the message: the API server is unreachable, or refuses the resource for now. It is " +
      "tried again.",
  },
  waiting_for_pod: {
    status: "Pending",
    message: "Waiting for a pod to begin the work",
    setBy: "operator",
    action:
      "Nothing, where a node fetches a large image, or Kubernetes waits after a pod was lost: 10 s, " +
      "and longer each time; otherwise `kubectl describe pod` says what the pod waits for.",
  },
  starting: {
    status: "Pending",
    message: "The worker starts",
    setBy: "service, operator",
    action: nothing,
  },
  suspended: {
    status: "Pending",
    message: "The job is suspended",
    setBy: "operator",
    action: "Set `spec.suspend` to false to resume it.",
  },
  waiting_for_queue: {
    status: "Pending",
    message: "Waiting to be admitted by a queue",
    setBy: "operator",
    action: "Check the queue's Workload and quota in Kueue.",
  },
  quota_exceeded: {
    status: "Pending",
    message: "Waiting for the namespace's quota",
    setBy: "operator",
    action: "Wait until other pods end, or raise the ResourceQuota that the message names.",
  },
  pod_refused: {
    status: "Pending",
    message: "The cluster refuses the worker's pod",
    setBy: "operator",
    action: "Read the message: an admission policy or the namespace's security level refuses it.",
  },
  name_in_use: {
    status: "Pending",
    message: "Waiting for the Job of an earlier CompressionJob of this name to be deleted",
    setBy: "operator",
    action: "Nothing: it ends when the earlier Job is deleted.",
  },
  unschedulable: {
    status: "Pending",
    message: "No node can run the worker's pod",
    setBy: "operator",
    action:
      "Compare what the message says is missing with the target's node selector and resources.",
  },
  image_unavailable: {
    status: "Pending",
    message: "The worker's image cannot be pulled",
    setBy: "operator",
    action: "Check the image's name, the registry and `imagePullSecrets`.",
  },
  pod_not_starting: {
    status: "Pending",
    message: "The worker's pod cannot be started",
    setBy: "operator",
    action: "Read the message and `kubectl describe pod`: a volume or a Secret is missing.",
  },
  worker_silent: {
    status: "Pending",
    message: "The worker's pod runs, and the service has not heard of it: the pod's log says why",
    setBy: "operator",
    action:
      "Nothing, where the service is away: the worker waits for it. Otherwise `kubectl logs` says " +
      "why the worker cannot reach it: a network policy, a name, a certificate.",
  },
  sharding: {
    status: "Sharding",
    message: "The worker fetches the model and shards its weights",
    setBy: "service",
    action: nothing,
  },
  optimizing: {
    status: "Optimizing",
    message: "The worker optimizes and evaluates the model",
    setBy: "service",
    action: nothing,
  },
  completed: {
    status: "Completed",
    message: "The model was compressed",
    setBy: "service, operator",
    action: nothing,
  },
  gates_failed: {
    status: "Completed",
    message: "The model was compressed, and a gate failed",
    setBy: "service",
    action: "`gates` of the job says which figure is beyond its limit.",
  },
  cancel_requested: {
    status: "Cancelling",
    message: "The job is being stopped",
    setBy: "service, operator",
    action: nothing,
  },
  node_unresponsive: {
    status: "Cancelling",
    message: "A node did not confirm that its pod stopped",
    setBy: "operator",
    action: "Check the node: its pod may run until the node answers again.",
  },
  cancelled: {
    status: "Cancelled",
    message: "The job was cancelled",
    setBy: "service, operator",
    action: nothing,
  },
} as const satisfies Record<string, StatusReasonEntry>;

/** A reason that is not an error code. */
export type OwnStatusReason = keyof typeof statusReasonTable;

export type StatusReason = OwnStatusReason | ErrorCode;

/** Why a job is in its status: the stable code, and the same for people. */
export interface StatusCause {
  readonly reason: StatusReason;
  readonly message: string;
}

/** Description of a field with a status reason. */
export const statusReasonDescription =
  "Stable code that says why the job is in its status: " +
  `one of ${listCodes(statusReasonTable)}, or an error code.`;

/** The cause as the table words it. */
export function statusCause(reason: OwnStatusReason): StatusCause {
  return { reason, message: statusReasonTable[reason].message };
}
