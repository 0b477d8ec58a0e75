import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import type { MergePatch } from "../../../../src/kubernetes/kubernetes-client.ts";
import {
  type ObservedWorkerJob,
  observedResources,
} from "../../../../src/resources/observed-resources.ts";
import type { ActionContext } from "./action-context.ts";

export async function patchWorkerJob(
  { client, run, workerJobs }: ActionContext,
  name: string,
  patch: MergePatch<ObservedWorkerJob>,
): Promise<undefined> {
  const workerJob = await ignoreNotFound(client.patch(observedResources.jobs, name, patch));
  if (workerJob !== undefined) run.expectWrite(workerJobs, workerJob);
}
