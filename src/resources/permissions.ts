import { apiGroup } from "../contract/custom-resources/api-group.ts";

/** A rule of a Role, with its purpose. */
export interface Permission {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  /** Of these objects only. */
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
  readonly why: string;
}

/** Lease that operators elect a leader with. */
export const operatorLease = "model-optimization-operator";

const readVerbs = ["get", "list", "watch"];

/** What the operator may do in each namespace that is served. */
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
];

/** What the operator may do besides in its own namespace. */
export const operatorOwnPermissions: readonly Permission[] = [
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    resourceNames: [operatorLease],
    verbs: ["get", "watch", "update", "delete"],
    why: "Leader election; a release that is uninstalled leaves no Lease",
  },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    verbs: ["create"],
    why: "The Lease of the first leader: names do not count when something is created",
  },
];

/** What the operator may do in the cluster. */
export const operatorClusterPermissions: readonly Permission[] = [
  {
    apiGroups: [""],
    resources: ["nodes"],
    verbs: ["get"],
    why: "Whether a node that does not stop a pod reports: its pods may run",
  },
  {
    apiGroups: [""],
    resources: ["namespaces"],
    verbs: ["get"],
    why: "Whether a namespace is being deleted: then nothing keeps its CompressionJobs",
  },
];

/** The same where it serves other namespaces too, whose Roles go before CompressionJobs do. */
export const operatorReleasePermissions: readonly Permission[] = [
  {
    apiGroups: [apiGroup],
    resources: ["compressionjobs"],
    verbs: ["patch"],
    why: "Finalizers of CompressionJobs that are deleted with their namespace",
  },
];

/** What the service may do in the cluster. */
export const serviceClusterPermissions: readonly Permission[] = [
  {
    apiGroups: ["authentication.k8s.io"],
    resources: ["tokenreviews"],
    verbs: ["create"],
    why: "The tokens that prove who workers are",
  },
  {
    apiGroups: [""],
    resources: ["namespaces"],
    verbs: ["get"],
    why: "Whether a namespace is gone: then no worker of its jobs runs",
  },
];

/** What the service may do in the cluster where ServiceAccounts call it. */
export const serviceCallerPermissions: readonly Permission[] = [
  {
    apiGroups: ["authorization.k8s.io"],
    resources: ["subjectaccessreviews"],
    verbs: ["create"],
    why: "Whether the ServiceAccount of a request may do what it asks for",
  },
];

/** What the service may do in each namespace that is served. */
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
    why: "`status.report` of CompressionJobs, what workers reported",
  },
  {
    apiGroups: [apiGroup],
    resources: ["batches/finalizers"],
    verbs: ["update"],
    why: "Owner references that block deletion, where the API server checks them",
  },
  { apiGroups: [""], resources: ["pods"], verbs: readVerbs, why: "Pods that work on a job" },
  { apiGroups: ["batch"], resources: ["jobs"], verbs: ["get"], why: "Whose pods they are" },
  {
    apiGroups: [""],
    resources: ["pods/log"],
    verbs: ["get"],
    why: "Events that a pod could not report",
  },
];
