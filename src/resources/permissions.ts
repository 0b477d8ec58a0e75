import { apiGroup } from "../contract/api-group.ts";

/** A rule of a Role, with its purpose. */
export interface Permission {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly why: string;
}

const readVerbs = ["get", "list", "watch"];

/** What the operator may do in its namespace. */
export const operatorPermissions: readonly Permission[] = [
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs"],
    verbs: [...readVerbs, "create", "patch", "delete"],
    why: "Jobs to run, jobs of batches, finalizers, cancellation and ttlSecondsAfterFinished",
  },
  {
    apiGroups: [apiGroup],
    resources: ["batches"],
    verbs: ["list", "watch", "delete"],
    why: "Batches whose jobs are created, and ttlSecondsAfterFinished",
  },
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs/status", "batches/status"],
    verbs: ["patch"],
    why: "Status of jobs and batches",
  },
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs/finalizers", "batches/finalizers"],
    verbs: ["update"],
    why: "Owner references that block deletion, where the API server checks them",
  },
  {
    apiGroups: ["batch"],
    resources: ["jobs"],
    verbs: [...readVerbs, "create", "patch", "delete"],
    why: "The Jobs that run workers",
  },
  {
    apiGroups: [""],
    resources: ["pods"],
    verbs: [...readVerbs, "delete"],
    why: "State of workers' pods; pods of cancelled jobs and on lost nodes are deleted",
  },
  {
    apiGroups: [""],
    resources: ["pods/status"],
    verbs: ["patch"],
    why: "Pods on lost nodes are marked as failed",
  },
  {
    apiGroups: [""],
    resources: ["events"],
    verbs: [...readVerbs, "create", "patch"],
    why: "Milestones for kubectl describe, and why a Job has no pods",
  },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    verbs: ["get", "watch", "create", "update"],
    why: "Leader election",
  },
];

/**
 * What the service may do in its namespace. It is also bound to `system:auth-delegator`, to review
 * the tokens of workers.
 */
export const servicePermissions: readonly Permission[] = [
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs", "batches"],
    verbs: [...readVerbs, "create", "patch"],
    why: "Requests of the REST interface are created as resources, and resources are recorded",
  },
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs/status"],
    verbs: ["patch"],
    why: "Reports of workers: progress, telemetry, artifacts, result",
  },
  {
    apiGroups: [apiGroup],
    resources: ["batches/finalizers"],
    verbs: ["update"],
    why: "Owner references that block deletion, where the API server checks them",
  },
  { apiGroups: [""], resources: ["pods"], verbs: readVerbs, why: "Pods that work on a job" },
  {
    apiGroups: [""],
    resources: ["pods/log"],
    verbs: ["get"],
    why: "Events that a pod could not report",
  },
];
