import { apiVersion, type CompressionJob } from "../../../src/contract/custom-resources.ts";
import type { Target } from "../../../src/contract/target.ts";
import type { CompressionJobObject } from "../../../src/kubernetes/custom-resources.ts";
import { jobIdOf } from "../../../src/kubernetes/job-identity.ts";
import type { Reflector } from "../../../src/kubernetes/reflector.ts";
import type { ObservedEvent, ObservedJob, ObservedPod } from "../../../src/kubernetes/observed-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import { readJob } from "./child-job.ts";
import { latestChild, podsOf } from "./steps.ts";
import { findTrouble } from "./trouble.ts";
import { aboutIndex, readWarning } from "./warning.ts";
import { readPod } from "./worker-pod.ts";
import type { JobSettings, World } from "./world.ts";

/** Index of caches by the id of the job. */
export const jobIdIndex = "job-id";

export interface WorldSources {
  readonly jobs: Reflector<ObservedJob>;
  readonly pods: Reflector<ObservedPod>;
  readonly warnings: Reflector<ObservedEvent>;
  readonly targets: readonly Target[];
  readonly settings: JobSettings;
  readonly now: Date;
}

export function toCompressionJob(object: Stored<CompressionJobObject>): CompressionJob {
  const { metadata, spec, status = { status: "Pending" } } = object;
  const { namespace = "", generation = 0 } = metadata;
  return { apiVersion, kind: "CompressionJob", metadata: { ...metadata, namespace, generation }, spec, status };
}

/** Reads what is known of a CompressionJob from the caches. */
export function readWorld(object: Stored<CompressionJobObject>, sources: WorldSources): World {
  const { warnings, targets, settings } = sources;
  const resource = toCompressionJob(object);
  const id = jobIdOf(resource);
  const world: World = {
    now: sources.now.getTime(),
    resource,
    jobs: sources.jobs.byIndex(jobIdIndex, id).map(readJob),
    pods: sources.pods.byIndex(jobIdIndex, id).map(readPod),
    targets,
    settings,
    trouble: undefined,
  };
  const job = latestChild(world);
  const trouble =
    job && findTrouble(job, podsOf(world, job), (uid) => warnings.byIndex(aboutIndex, uid).map(readWarning));
  return { ...world, trouble };
}
