import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import { observedResources } from "../../../../src/resources/observed-resources.ts";
import type { Action } from "../decide/decision.ts";
import type { ActionContext } from "./action-context.ts";

export async function setWorkerJobTtl(
  { client, run, workerJobs }: ActionContext,
  { name, seconds }: Action & { type: "setWorkerJobTtl" },
): Promise<undefined> {
  const patch = { spec: { ttlSecondsAfterFinished: seconds } };
  const workerJob = await ignoreNotFound(client.patch(observedResources.jobs, name, patch));
  if (workerJob !== undefined) run.expectWrite(workerJobs, workerJob);
}
