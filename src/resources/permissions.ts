import { apiGroup } from "../contract/api-group.ts";

/** A rule of a Role, and what it is for. */
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
    why: "Jobs to run; those of batches, finalizers, cancelling, and the end of their time to live",
  },
  {
    apiGroups: [apiGroup],
    resources: ["batches"],
    verbs: ["list", "watch", "delete"],
    why: "Batches to make jobs of, and the end of their time to live",
  },
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs/status", "batches/status"],
    verbs: ["patch"],
    why: "What became of them",
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
    why: "What workers' pods wait for and how they ended; pods of cancelled jobs and on lost nodes are deleted",
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
    why: "The election of a leader",
  },
];

/** What the service may do in its namespace. To check workers' tokens it is also bound to `system:auth-delegator`. */
export const servicePermissions: readonly Permission[] = [
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs", "batches"],
    verbs: [...readVerbs, "create", "patch"],
    why: "Requests of the REST interface become resources, resources become records",
  },
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs/status"],
    verbs: ["patch"],
    why: "What workers told: progress, telemetry, artifacts, result",
  },
  {
    apiGroups: [apiGroup],
    resources: ["batches/finalizers"],
    verbs: ["update"],
    why: "Owner references that block deletion, where the API server checks them",
  },
  { apiGroups: [""], resources: ["pods"], verbs: readVerbs, why: "Which pod works on which job" },
  {
    apiGroups: [""],
    resources: ["pods/log"],
    verbs: ["get"],
    why: "Events that a pod could not send",
  },
];
