import type { Scope } from "./token.ts";

/** How far an action reaches: whose things it can be done to. */
export const reachTable = {
  any: "Belongs to no tenant, or creates something of the caller's own.",
  commit:
    "Things of the caller's project; a workflow those of its repository, and a run that " +
    "strangers can cause, such as a pull request's, those of its commit.",
  repository: "Things of the caller's project; a workflow those of its repository.",
  project: "Things of the caller's project; none for a workflow.",
  own: "Things of an administrator's project, for others their own; none for a workflow.",
  administered:
    "Things of the caller's project, for administrators of the project `default` of every one; " +
    "none for a workflow.",
  installation: "Things of all projects, only for administrators of the project `default`.",
} as const;
export type Reach = keyof typeof reachTable;

export interface Permission {
  /** Null where any valid token will do. */
  readonly scope: Scope | null;
  readonly reach: Reach;
  readonly does: string;
}

/** Every action, the scope that it needs and how far it reaches. */
export const permissionTable = {
  readWork: {
    scope: "jobs:read",
    reach: "commit",
    does: "Read jobs and batches, their logs and artifacts.",
  },
  startWork: { scope: "jobs:write", reach: "any", does: "Start jobs and batches." },
  cancelWork: { scope: "jobs:write", reach: "commit", does: "Cancel jobs and batches." },
  retryWork: {
    scope: "jobs:write",
    reach: "commit",
    does: "Start jobs that have ended again, or the failed ones of a batch.",
  },
  deleteLinks: { scope: "jobs:write", reach: "commit", does: "End all links to a job's files." },
  deleteWork: {
    scope: "jobs:write",
    reach: "commit",
    does: "Delete jobs and batches that have ended, with their logs and artifacts.",
  },
  uploadModel: {
    scope: "models:write",
    reach: "repository",
    does: "Upload models, and find those that were uploaded.",
  },
  listModels: { scope: "models:write", reach: "project", does: "List uploaded models." },
  deleteModel: { scope: "models:write", reach: "project", does: "Delete uploaded models." },
  useModel: { scope: "jobs:write", reach: "repository", does: "Name an upload in a job." },
  compareWithSuite: {
    scope: "jobs:write",
    reach: "repository",
    does: "Compare jobs with the baselines of a suite.",
  },
  recordBaselines: {
    scope: "baselines:write",
    reach: "repository",
    does: "Record baselines of a suite, which belongs to the repository that records first.",
  },
  requestReport: {
    scope: "reports:write",
    reach: "repository",
    does: "Have check runs written; a workflow on its own commit, as its trust policy allows.",
  },
  readUsage: {
    scope: "jobs:read",
    reach: "project",
    does: "Read how much of its quotas the project uses.",
  },
  readStatus: {
    scope: "admin",
    reach: "installation",
    does: "Read how the service itself is: queue, workers, disk and versions.",
  },
  listTargets: { scope: "jobs:read", reach: "any", does: "List targets." },
  readInterface: { scope: null, reach: "any", does: "Read the OpenAPI document." },
  exchangeIdentity: {
    scope: null,
    reach: "any",
    does: "Exchange an identity token, which needs no access token.",
  },
  followLink: {
    scope: null,
    reach: "any",
    does: "Download a file by a signed link, which needs no access token.",
  },
  manageOwnToken: {
    scope: null,
    reach: "any",
    does: "Read and revoke the access token of the request itself.",
  },
  manageWebhooks: {
    scope: "webhooks:write",
    reach: "project",
    does: "Create, list and delete webhooks, and read and repeat their deliveries.",
  },
  readSelf: { scope: null, reach: "any", does: "Read who sends the request." },
  signIn: { scope: null, reach: "any", does: "Sign in, which needs no access token." },
  manageOwnSessions: {
    scope: null,
    reach: "any",
    does: "Manage sessions of the person who is signed in, and choose the project.",
  },
  readAudit: { scope: "admin", reach: "project", does: "List who changed what." },
  manageTokens: {
    scope: "tokens:write",
    reach: "own",
    does: "Create, list and revoke tokens, with at most the caller's scopes.",
  },
  manageMembers: {
    scope: "admin",
    reach: "administered",
    does: "List members of projects, and give and take their roles.",
  },
  readTrustPolicy: {
    scope: "admin",
    reach: "installation",
    does: "Check which access token a workflow would get.",
  },
  manageProjects: {
    scope: "admin",
    reach: "installation",
    does: "Create and list projects, and create tokens of other projects.",
  },
} as const satisfies Record<string, Permission>;
export type Action = keyof typeof permissionTable;

/** Audience of the ServiceAccount tokens that programs in a cluster call the service with. */
export const callerTokenAudience = "model-optimization";

/**
 * The Kubernetes verb that a ServiceAccount needs for an action, on CompressionJobs and on Batches
 * of its namespace. Actions that are not here need an access token.
 */
export const serviceAccountVerbs: Partial<Record<Action, string>> = {
  readWork: "list",
  readUsage: "list",
  listTargets: "list",
  listModels: "list",
  startWork: "create",
  retryWork: "create",
  uploadModel: "create",
  useModel: "create",
  compareWithSuite: "create",
  cancelWork: "patch",
  deleteLinks: "patch",
  deleteWork: "delete",
  deleteModel: "delete",
};
