import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { ActionContext } from "./action-context.ts";
import { areWorkersStopped } from "./are-workers-stopped.ts";

/**
 * Asks the API server about a job whose work may have started before: it may have ended, and its
 * worker Job may have expired, while the caches were behind.
 */
export async function mayStartWork(
  { client, startedJobs, resource: { metadata } }: ActionContext,
  observed: ObservedState,
): Promise<boolean> {
  if (!(await startedJobs.mayInclude(metadata))) return true;
  const live = await ignoreNotFound(client.get(compressionJobs, metadata.name));
  if (live?.metadata.uid !== metadata.uid || live.metadata.deletionTimestamp) return false;
  const { status, startedAt } = live.status ?? { status: "Pending" };
  if (live.spec.cancel || status === "Cancelling" || isTerminal(status)) return false;
  const hasBegun = status !== "Pending" || startedAt !== undefined;
  return !hasBegun || (await areWorkersStopped(client, observed));
}
