import type { Action } from "./permissions.ts";

/** Audience of the ServiceAccount tokens by which programs in a cluster call the service. */
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
  deleteWork: "delete",
  deleteModel: "delete",
};
