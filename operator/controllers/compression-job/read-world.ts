import { apiVersion, type CompressionJob } from "../../../src/contract/custom-resources.ts";
import type { Target } from "../../../src/contract/target.ts";
import type { CompressionJobObject } from "../../../src/kubernetes/custom-resources.ts";
import { childJobName, jobIdOf, jobStep } from "../../../src/kubernetes/job-identity.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import type { Reflector } from "../../../src/kubernetes/reflector.ts";
import { type Job, type Pod, resources, type Stored } from "../../../src/kubernetes/resources.ts";
import { readJob } from "./child-job.ts";
import { latestChild, podsOf } from "./steps.ts";
import { findTrouble } from "./trouble.ts";
import { readPod } from "./worker-pod.ts";
import type { JobSettings, World } from "./world.ts";

/** Index of caches by the id of the job. */
export const jobIdIndex = "job-id";

export interface WorldSources {
  readonly client: KubernetesClient;
  readonly jobs: Reflector<Job>;
  readonly pods: Reflector<Pod>;
  readonly targets: readonly Target[];
  readonly settings: JobSettings;
  readonly now: Date;
}

export function toCompressionJob(object: Stored<CompressionJobObject>): CompressionJob {
  const { metadata, spec, status = { status: "Pending" } } = object;
  const { namespace = "", generation = 0 } = metadata;
  return { apiVersion, kind: "CompressionJob", metadata: { ...metadata, namespace, generation }, spec, status };
}

/** Reads what is known of a CompressionJob from the caches, and asks the API server why a Job has no pods. */
export async function readWorld(object: Stored<CompressionJobObject>, sources: WorldSources): Promise<World> {
  const { client, targets, settings } = sources;
  const resource = toCompressionJob(object);
  const id = jobIdOf(resource);
  const named = jobStep.options.map((step) => sources.jobs.get(childJobName(resource.metadata.name, step)));
  const jobs = new Set([...sources.jobs.byIndex(jobIdIndex, id), ...named.filter((job) => job !== undefined)]);
  const world: World = {
    now: sources.now.getTime(),
    resource,
    jobs: [...jobs].map(readJob),
    pods: sources.pods.byIndex(jobIdIndex, id).map(readPod),
    targets,
    settings,
    trouble: "",
  };
  const job = latestChild(world);
  const troubled = job && findTrouble(job, podsOf(world, job));
  if (troubled === undefined || troubled.from > world.now) return world;
  return { ...world, trouble: await readTrouble(client, troubled.uid) };
}

/** The last event of an object, where it is a warning. */
async function readTrouble(client: KubernetesClient, uid: string): Promise<string> {
  const pages = await Array.fromAsync(client.list(resources.events, { fieldSelector: `involvedObject.uid=${uid}` }));
  const [latest] = pages
    .flatMap(({ items }) => items)
    .toSorted((one, other) => timeOf(other.lastTimestamp) - timeOf(one.lastTimestamp));
  return latest?.type === "Warning" ? (latest.message ?? "").replace(/^Error creating: /, "") : "";
}

function timeOf(text: string | null | undefined): number {
  return Date.parse(text ?? "") || 0;
}
