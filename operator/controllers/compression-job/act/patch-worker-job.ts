import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import type { KubernetesJob } from "../../../../src/kubernetes/resources.ts";
import { observedResources } from "../../../../src/resources/observed-resources.ts";
import type { ActionContext } from "./action-context.ts";

type WorkerJobSpec = NonNullable<KubernetesJob["spec"]>;

export async function patchWorkerJob(
  { client, run, workerJobs }: ActionContext,
  name: string,
  spec: Pick<WorkerJobSpec, "ttlSecondsAfterFinished" | "activeDeadlineSeconds">,
): Promise<undefined> {
  const workerJob = await ignoreNotFound(client.patch(observedResources.jobs, name, { spec }));
  if (workerJob !== undefined) run.expectWrite(workerJobs, workerJob);
}
