import { recordFinalizer, resourceLabels } from "../../../src/contract/resource-labels.ts";
import { isTerminal } from "../../../src/contract/status.ts";
import {
  type CompressionJobObject,
  compressionJobs,
} from "../../../src/resources/custom-resources.ts";
import { resolveJobId } from "../../../src/resources/job-identity.ts";
import type {
  KubernetesClient,
  MergePatch,
  PatchOptions,
} from "../../../src/kubernetes/kubernetes-client.ts";
import {
  isAlreadyExists,
  isInvalid,
  isNotFound,
  KubernetesError,
} from "../../../src/kubernetes/kubernetes-error.ts";
import {
  type ObservedWorkerJob,
  observedResources,
} from "../../../src/resources/observed-resources.ts";
import {
  type KubernetesJob,
  type KubernetesObject,
  type Pod,
  resources,
  type ResourceType,
  type Stored,
} from "../../../src/kubernetes/resources.ts";
import type { ReconcileRun, Requeue } from "../../../src/controller-runtime/controller.ts";
import type { EventRecorder } from "../../../src/controller-runtime/event-recorder.ts";
import type { WatchedResource } from "../../../src/controller-runtime/watch-resource.ts";
import type { Action } from "./decision.ts";
import type { StartedJobs } from "./started-jobs.ts";
import { toWorkerJob } from "./worker-job.ts";
import { decide } from "./decide.ts";
import { mayRun, toWorkerPod } from "./worker-pod.ts";
import type { ObservedState } from "./observed-state.ts";

export interface ReconcilerDependencies {
  readonly client: KubernetesClient;
  readonly compressionJobs: WatchedResource<CompressionJobObject>;
  readonly workerJobs: WatchedResource<ObservedWorkerJob>;
  readonly events: EventRecorder;
  readonly startedJobs: StartedJobs;
}

/** Looks again soon: what the API server says right now is not what the caches say. */
const staleCacheRetryMs = 1_000;

/** Carries out what is decided about one CompressionJob, action by action. */
export class CompressionJobReconciler {
  readonly #dependencies: ReconcilerDependencies;
  readonly #run: ReconcileRun;
  #resource: Stored<CompressionJobObject>;

  constructor(
    dependencies: ReconcilerDependencies,
    run: ReconcileRun,
    resource: Stored<CompressionJobObject>,
  ) {
    this.#dependencies = dependencies;
    this.#run = run;
    this.#resource = resource;
  }

  async reconcile(observed: ObservedState): Promise<Requeue | undefined> {
    const { actions, requeueAt } = decide(observed);
    for (const action of actions) {
      const instead = await this.#execute(action, observed);
      if (instead === "stale") return { requeueAfterMs: staleCacheRetryMs };
      if (instead !== undefined) return this.reconcile(instead);
    }
    return requeueAt === undefined
      ? undefined
      : { requeueAfterMs: Math.max(1, requeueAt - observed.now) };
  }

  /** Gives the world to decide on instead where an action found out more about it. */
  async #execute(action: Action, observed: ObservedState): Promise<ObservedState | "stale" | void> {
    switch (action.type) {
      case "writeStatus":
        return this.#patch({ status: action.patch }, { subresource: "status" });
      case "setFinalizer":
        return this.#setFinalizer(action.present);
      case "confirmStopped":
        return (await this.#areWorkersStopped(observed)) ? undefined : "stale";
      case "createWorkerJob":
        return this.#createWorkerJob(action.manifest, observed);
      case "setWorkerJobTtl":
        return this.#setWorkerJobTtl(action);
      case "deleteWorkerJob":
        return this.#delete(resources.jobs, action);
      case "deletePod":
        return this.#delete(resources.pods, action);
      case "removeLostPod":
        return this.#removeLostPod(action);
      case "deleteResource":
        return this.#delete(compressionJobs, this.#resource.metadata);
      case "recordEvent": {
        const { warning, reason, message } = action;
        const type = warning ? "Warning" : "Normal";
        this.#dependencies.events.record(compressionJobs, this.#resource, {
          type,
          reason,
          message,
        });
        return undefined;
      }
    }
  }

  async #patch(
    patch: MergePatch<CompressionJobObject>,
    options: PatchOptions = {},
  ): Promise<"stale" | undefined> {
    const { name, resourceVersion } = this.#resource.metadata;
    const { client, compressionJobs: watched } = this.#dependencies;
    const call = client.patch<CompressionJobObject>(compressionJobs, name, patch, {
      ...options,
      resourceVersion,
    });
    const changed = await ignoreNotFound(call);
    if (changed === undefined) return "stale";
    this.#resource = changed;
    this.#run.expectWrite(watched, changed);
    return undefined;
  }

  async #setFinalizer(present: boolean): Promise<"stale" | undefined> {
    const others =
      this.#resource.metadata.finalizers?.filter((finalizer) => finalizer !== recordFinalizer) ??
      [];
    return this.#patch({
      metadata: { finalizers: present ? [...others, recordFinalizer] : others },
    });
  }

  async #createWorkerJob(
    manifest: KubernetesJob,
    observed: ObservedState,
  ): Promise<ObservedState | "stale" | undefined> {
    const { client, workerJobs, startedJobs } = this.#dependencies;
    if (!(await this.#mayStartWork(observed))) return "stale";
    startedJobs.add(this.#resource.metadata);
    try {
      this.#run.expectWrite(workerJobs, await client.create(observedResources.jobs, manifest));
      return undefined;
    } catch (error) {
      if (isAlreadyExists(error)) return this.#observeExisting(manifest, observed);
      if (error instanceof KubernetesError && (error.status === 403 || isInvalid(error))) {
        return {
          ...observed,
          workerJobRejection: { message: error.message, final: isInvalid(error) },
        };
      }
      throw error;
    }
  }

  async #observeExisting(
    manifest: KubernetesJob,
    observed: ObservedState,
  ): Promise<ObservedState | "stale"> {
    const existing = await ignoreNotFound(
      this.#dependencies.client.get(observedResources.jobs, manifest.metadata?.name ?? ""),
    );
    if (existing === undefined) return "stale";
    const workerJob = toWorkerJob(existing);
    return {
      ...observed,
      workerJobs: [...observed.workerJobs.filter(({ name }) => name !== workerJob.name), workerJob],
    };
  }

  /** A job whose work was begun before may have ended, and its Job expired, without the caches knowing. */
  async #mayStartWork(observed: ObservedState): Promise<boolean> {
    const { metadata } = this.#resource;
    if (!(await this.#dependencies.startedJobs.mayInclude(metadata))) return true;
    const live = await ignoreNotFound(
      this.#dependencies.client.get(compressionJobs, metadata.name),
    );
    if (live === undefined || live.metadata.uid !== metadata.uid || live.metadata.deletionTimestamp)
      return false;
    const { status } = live.status ?? { status: "Pending" };
    if (live.spec.cancel || status === "Cancelling" || isTerminal(status)) return false;
    return status === "Pending" || (await this.#areWorkersStopped(observed));
  }

  async #areWorkersStopped({ resource }: ObservedState): Promise<boolean> {
    const { client } = this.#dependencies;
    const labelSelector = `${resourceLabels.jobId}=${resolveJobId(resource)}`;
    for await (const { items } of client.list(observedResources.jobs, { labelSelector })) {
      if (items.map(toWorkerJob).some(({ end }) => end === undefined)) return false;
    }
    for await (const { items } of client.list(observedResources.pods, { labelSelector })) {
      if (items.map(toWorkerPod).some(mayRun)) return false;
    }
    return true;
  }

  async #setWorkerJobTtl({ name, seconds }: Action & { type: "setWorkerJobTtl" }): Promise<void> {
    const patch = { spec: { ttlSecondsAfterFinished: seconds } };
    const workerJob = await ignoreNotFound(
      this.#dependencies.client.patch(observedResources.jobs, name, patch),
    );
    if (workerJob !== undefined) this.#run.expectWrite(this.#dependencies.workerJobs, workerJob);
  }

  async #removeLostPod({ name, uid, node }: Action & { type: "removeLostPod" }): Promise<void> {
    const { client } = this.#dependencies;
    const pod = await ignoreNotFound(client.get(resources.pods, name));
    if (pod?.metadata.uid !== uid) return;
    await client.patch(
      resources.pods,
      name,
      { status: lostPodStatus(pod, node) },
      { subresource: "status" },
    );
    await this.#delete(resources.pods, { name, uid }, 0);
  }

  async #delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    { name, uid }: { readonly name: string; readonly uid: string },
    gracePeriodSeconds?: number,
  ): Promise<void> {
    const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    await ignoreNotFound(
      this.#dependencies.client.delete(type, name, {
        propagationPolicy: "Foreground",
        uid,
        ...grace,
      }),
    );
  }
}

/** As the control plane marks pods of nodes that are gone: their Job sees a disruption, and makes another pod. */
function lostPodStatus({ status }: Pod, node: string): MergePatch<NonNullable<Pod["status"]>> {
  const reason = "NodeUnresponsive";
  const message = `The node "${node}" did not confirm that the pod stopped`;
  const others = status?.conditions?.filter(({ type }) => type !== "DisruptionTarget") ?? [];
  const lastTransitionTime = new Date().toISOString();
  const disruption = {
    type: "DisruptionTarget",
    status: "True",
    reason,
    message,
    lastTransitionTime,
  };
  return { phase: "Failed", reason, message, conditions: [...others, disruption] };
}

/** Undefined where there is nothing of that name. */
async function ignoreNotFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
