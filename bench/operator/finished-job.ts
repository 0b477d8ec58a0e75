import { resourceLabels } from "../../src/contract/custom-resources/resource-labels.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { parseResponseJson } from "../../src/kubernetes/cluster-client.ts";
import {
  type KubernetesJob,
  type KubernetesObject,
  type Pod,
  resources,
  type ResourceType,
  type Stored,
} from "../../src/kubernetes/resources.ts";
import { newId } from "../../src/contract/id.ts";
import {
  type CompressionJobObject,
  compressionJobs,
} from "../../src/resources/custom-resources.ts";
import { workerJobName } from "../../src/resources/job-identity.ts";

/** A job that has ended, with its worker Job and its pod. */
export interface FinishedJob {
  readonly job: Stored<CompressionJobObject>;
  readonly workerJob: Stored<KubernetesJob>;
  readonly pod: Stored<Pod>;
}

const copiesAtOnce = 20;

/** Any job of a namespace in which all have ended. */
export async function readFinishedJob(client: KubernetesClient): Promise<FinishedJob> {
  const job = await readFirst(client, compressionJobs);
  const { name } = job.metadata;
  const labelSelector = `${resourceLabels.jobId}=${name}`;
  return {
    job,
    workerJob: await client.get(resources.jobs, workerJobName(name, "work")),
    pod: await readFirst(client, resources.pods, labelSelector),
  };
}

async function readFirst<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  labelSelector?: string,
): Promise<Stored<T>> {
  for await (const { items } of client.list(type, { labelSelector, limit: 1 })) {
    const [first] = items;
    if (first !== undefined) return first;
  }
  throw new Error(`There are no ${type.plural}`);
}

/** Creates copies of a finished job under other ids. No controller of the cluster works on them. */
export async function copyFinishedJob(
  client: KubernetesClient,
  finished: FinishedJob,
  count: number,
): Promise<void> {
  const waiting = Array.from({ length: count }, () => newId("job", new Date())).values();
  await Promise.all(
    Array.from({ length: copiesAtOnce }, async () => {
      for (const id of waiting) await copyAs(client, withId(finished, id));
    }),
  );
}

function withId(finished: FinishedJob, id: string): FinishedJob {
  return parseResponseJson(JSON.stringify(finished).replaceAll(finished.job.metadata.name, id));
}

async function copyAs(
  client: KubernetesClient,
  { job, workerJob, pod }: FinishedJob,
): Promise<void> {
  const managedBy = "bench.modeloptimization.dev/copy";
  const template = workerJob.spec?.template ?? {};
  const { nodeName: _, ...podSpec } = pod.spec ?? { containers: [] };
  const { uid } = await createWithStatus(client, compressionJobs, job);
  const created = await createWithStatus(client, resources.jobs, {
    ...workerJob,
    metadata: { ...workerJob.metadata, ownerReferences: ownedBy(workerJob, uid) },
    spec: { ...workerJob.spec, template, managedBy },
  });
  await createWithStatus(client, resources.pods, {
    ...pod,
    metadata: { ...pod.metadata, ownerReferences: ownedBy(pod, created.uid) },
    spec: { ...podSpec, schedulerName: "none" },
  });
}

function ownedBy({ metadata }: Stored<KubernetesObject>, uid: string) {
  return (metadata.ownerReferences ?? []).map((owner) => ({ ...owner, uid }));
}

async function createWithStatus<T extends KubernetesObject & { status?: object }>(
  client: KubernetesClient,
  type: ResourceType<T>,
  object: Stored<T>,
) {
  const { name, labels = {}, annotations = {}, ownerReferences = [] } = object.metadata;
  const metadata = { name, labels, annotations, ownerReferences };
  const created = await client.create(type, { ...object, metadata });
  await client.replace(type, { ...created, status: object.status }, { subresource: "status" });
  return created.metadata;
}
