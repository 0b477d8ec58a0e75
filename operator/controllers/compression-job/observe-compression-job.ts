import { apiVersion } from "../../../src/contract/api-group.ts";
import type { CompressionJob } from "../../../src/contract/compression-job.ts";
import type { Target } from "../../../src/contract/target.ts";
import type { CompressionJobObject } from "../../../src/resources/custom-resources.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import type { Reflector } from "../../../src/kubernetes/reflector.ts";
import type {
  ObservedEvent,
  ObservedWorkerJob,
  ObservedPod,
} from "../../../src/resources/observed-resources.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import { toWorkerJob } from "./worker-job.ts";
import { latestWorkerJob, workerJobPods } from "./steps.ts";
import { findStepWarning } from "./step-warning.ts";
import { involvedObjectIndex, toWarningEvent } from "./warning-event.ts";
import { toWorkerPod } from "./worker-pod.ts";
import type { JobSettings, ObservedState } from "./observed-state.ts";

/** Index of caches by the id of the job. */
export const jobIdIndex = "job-id";

export interface CompressionJobSources {
  readonly workerJobs: Reflector<ObservedWorkerJob>;
  readonly pods: Reflector<ObservedPod>;
  readonly warnings: Reflector<ObservedEvent>;
  readonly targets: readonly Target[];
  readonly settings: JobSettings;
  readonly now: Date;
}

export function toCompressionJob(object: Stored<CompressionJobObject>): CompressionJob {
  const { metadata, spec, status = { status: "Pending" } } = object;
  const { namespace = "", generation = 0 } = metadata;
  return {
    apiVersion,
    kind: "CompressionJob",
    metadata: { ...metadata, namespace, generation },
    spec,
    status,
  };
}

/** Reads what is known of a CompressionJob from the caches. */
export function observeCompressionJob(
  resourceObject: Stored<CompressionJobObject>,
  sources: CompressionJobSources,
): ObservedState {
  const { warnings, targets, settings } = sources;
  const resource = toCompressionJob(resourceObject);
  const id = resolveJobId(resource);
  const observed: ObservedState = {
    now: sources.now.getTime(),
    resource,
    workerJobs: sources.workerJobs.byIndex(jobIdIndex, id).map(toWorkerJob),
    pods: sources.pods.byIndex(jobIdIndex, id).map(toWorkerPod),
    targets,
    settings,
    stepWarning: undefined,
  };
  const workerJob = latestWorkerJob(observed);
  const stepWarning =
    workerJob &&
    findStepWarning(workerJob, workerJobPods(observed, workerJob), (uid) =>
      warnings.byIndex(involvedObjectIndex, uid).map(toWarningEvent),
    );
  return { ...observed, stepWarning };
}
