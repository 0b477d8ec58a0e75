import {
  ignoreNotFound,
  isAlreadyExists,
  isInvalid,
  KubernetesError,
} from "../../../../src/kubernetes/kubernetes-error.ts";
import type { KubernetesJob } from "../../../../src/kubernetes/resources.ts";
import { observedResources } from "../../../../src/resources/observed-resources.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { toWorkerJob } from "../observe/worker-job.ts";
import type { ActionContext, ActionResult } from "./action-context.ts";
import { mayStartWork } from "./may-start-work.ts";

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
  const existing = await ignoreNotFound(
    client.get(observedResources.jobs, manifest.metadata?.name ?? ""),
  );
  if (existing === undefined) return "stale";
  const workerJob = toWorkerJob(existing);
  const others = observed.workerJobs.filter(({ name }) => name !== workerJob.name);
  return { ...observed, workerJobs: [...others, workerJob] };
}
