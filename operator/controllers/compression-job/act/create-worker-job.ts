import type { ActionContext, ActionResult } from "./action-context.ts";
import { areWorkersStopped } from "./are-workers-stopped.ts";
import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import type { KubernetesClient } from "../../../../src/kubernetes/kubernetes-client.ts";
import {
  ignoreNotFound,
  isAlreadyExists,
  isInvalid,
  KubernetesError,
} from "../../../../src/kubernetes/kubernetes-error.ts";
import { type KubernetesJob, resources } from "../../../../src/kubernetes/resources.ts";
import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import { observedResources } from "../../../../src/resources/observed-resources.ts";
import { hasReportedEnd } from "../decide/job-end.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { toWorkerJob } from "../observe/worker-job.ts";

export async function createWorkerJob(
  context: ActionContext,
  manifest: KubernetesJob,
  observed: ObservedState,
): Promise<ActionResult> {
  const { client, run, workerJobs, startedJobs, resource } = context;
  if (!(await mayStartWork(context, observed))) return "stale";
  startedJobs.add(resource.metadata);
  try {
    run.expectWrite(workerJobs, await client.create(observedResources.jobs, manifest));
    return undefined;
  } catch (error) {
    if (isAlreadyExists(error)) return observeExisting(context, manifest, observed);
    if (error instanceof KubernetesError && (error.status === 403 || isInvalid(error))) {
      const workerJobRejection = { message: error.message, final: isInvalid(error) };
      return { ...observed, workerJobRejection };
    }
    throw error;
  }
}

async function observeExisting(
  { client }: ActionContext,
  manifest: KubernetesJob,
  observed: ObservedState,
): Promise<ActionResult> {
  const name = manifest.metadata?.name;
  if (name === undefined) throw new TypeError("The manifest of a worker Job has no name");
  const existing = await ignoreNotFound(client.get(observedResources.jobs, name));
  if (existing === undefined) return "stale";
  const workerJob = toWorkerJob(existing);
  const others = observed.workerJobs.filter(({ name }) => name !== workerJob.name);
  return { ...observed, workerJobs: [...others, workerJob] };
}

/**
 * Asks the API server about a job whose work may have started before: it may have ended, and its
 * worker Job may have expired, while the caches were behind.
 */
async function mayStartWork(
  { client, startedJobs, resource: { metadata } }: ActionContext,
  observed: ObservedState,
): Promise<boolean> {
  if (!(await startedJobs.mayInclude(metadata))) return true;
  const live = await ignoreNotFound(client.get(compressionJobs, metadata.name));
  if (live?.metadata.uid !== metadata.uid || live.metadata.deletionTimestamp) return false;
  const { status, startedAt, report } = live.status ?? { status: "Pending" };
  if (live.spec.cancel || status === "Cancelling" || isTerminal(status)) return false;
  if (hasReportedEnd(report)) return false;
  const hasBegun =
    status !== "Pending" || startedAt !== undefined || report?.startedAt !== undefined;
  return !hasBegun || (await areWorkersStopped(client, observed));
}

/** Of the nodes of a job's pods, those that are there and report to the control plane. */
export async function findReadyNodes(
  client: KubernetesClient,
  { pods }: ObservedState,
): Promise<ReadonlySet<string>> {
  const names = new Set(pods.flatMap(({ node }) => node ?? []));
  const ready = await Promise.all(
    Array.from(names, async (name) => {
      const node = await ignoreNotFound(client.get(resources.nodes, name));
      const conditions = node?.status?.conditions ?? [];
      return conditions.some(({ type, status }) => type === "Ready" && status === "True")
        ? [name]
        : [];
    }),
  );
  return new Set(ready.flat());
}
