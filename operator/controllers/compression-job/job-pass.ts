import { recordFinalizer, resourceLabels } from "../../../src/contract/custom-resources.ts";
import { isTerminal } from "../../../src/contract/status.ts";
import { type CompressionJobObject, compressionJobs } from "../../../src/kubernetes/custom-resources.ts";
import { jobIdOf } from "../../../src/kubernetes/job-identity.ts";
import type { KubernetesClient, MergePatch, PatchOptions } from "../../../src/kubernetes/kubernetes-client.ts";
import { isAlreadyExists, isInvalid, isNotFound, KubernetesError } from "../../../src/kubernetes/kubernetes-error.ts";
import { type ObservedJob, observedResources } from "../../../src/kubernetes/observed-resources.ts";
import {
  type Job,
  type KubernetesObject,
  type Pod,
  resources,
  type ResourceType,
  type Stored,
} from "../../../src/kubernetes/resources.ts";
import type { ReconcileRun, Requeue } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { WatchedResource } from "../../runtime/watch-resource.ts";
import type { Action } from "./action.ts";
import type { BegunJobs } from "./begun-jobs.ts";
import { readJob } from "./child-job.ts";
import { decide } from "./decide.ts";
import { mayRun, readPod } from "./worker-pod.ts";
import type { World } from "./world.ts";

export interface PassTools {
  readonly client: KubernetesClient;
  readonly compressionJobs: WatchedResource<CompressionJobObject>;
  readonly jobs: WatchedResource<ObservedJob>;
  readonly events: EventRecorder;
  readonly begunJobs: BegunJobs;
}

/** Looks again soon: what the API server says right now is not what the caches say. */
const staleMs = 1_000;

/** Carries out what is decided about one CompressionJob, action by action. */
export class JobPass {
  readonly #tools: PassTools;
  readonly #run: ReconcileRun;
  #object: Stored<CompressionJobObject>;

  constructor(tools: PassTools, run: ReconcileRun, object: Stored<CompressionJobObject>) {
    this.#tools = tools;
    this.#run = run;
    this.#object = object;
  }

  async carryOut(world: World): Promise<Requeue | undefined> {
    const { actions, lookAgainAt } = decide(world);
    for (const action of actions) {
      const instead = await this.#perform(action, world);
      if (instead === "stale") return { requeueAfterMs: staleMs };
      if (instead !== undefined) return this.carryOut(instead);
    }
    return lookAgainAt === undefined ? undefined : { requeueAfterMs: Math.max(1, lookAgainAt - world.now) };
  }

  /** Gives the world to decide on instead where an action found out more about it. */
  async #perform(action: Action, world: World): Promise<World | "stale" | void> {
    switch (action.type) {
      case "writeStatus":
        return this.#patch({ status: action.patch }, { subresource: "status" });
      case "setFinalizer":
        return this.#setFinalizer(action.held);
      case "confirmStopped":
        return (await this.#isStopped(world)) ? undefined : "stale";
      case "createJob":
        return this.#createJob(action.manifest, world);
      case "setJobTtl":
        return this.#setJobTtl(action);
      case "deleteJob":
        return this.#delete(resources.jobs, action);
      case "deletePod":
        return this.#delete(resources.pods, action);
      case "removeLostPod":
        return this.#removeLostPod(action);
      case "deleteResource":
        return this.#delete(compressionJobs, this.#object.metadata);
      case "recordEvent": {
        const { warning, reason, message } = action;
        const type = warning ? "Warning" : "Normal";
        this.#tools.events.record(compressionJobs, this.#object, { type, reason, message });
        return undefined;
      }
    }
  }

  async #patch(patch: MergePatch<CompressionJobObject>, options: PatchOptions = {}): Promise<"stale" | undefined> {
    const { name, resourceVersion } = this.#object.metadata;
    const { client, compressionJobs: watched } = this.#tools;
    const call = client.patch<CompressionJobObject>(compressionJobs, name, patch, { ...options, resourceVersion });
    const changed = await found(call);
    if (changed === undefined) return "stale";
    this.#object = changed;
    this.#run.wrote(watched, changed);
    return undefined;
  }

  async #setFinalizer(held: boolean): Promise<"stale" | undefined> {
    const others = this.#object.metadata.finalizers?.filter((finalizer) => finalizer !== recordFinalizer) ?? [];
    return this.#patch({ metadata: { finalizers: held ? [...others, recordFinalizer] : others } });
  }

  async #createJob(manifest: Job, world: World): Promise<World | "stale" | undefined> {
    const { client, jobs, begunJobs } = this.#tools;
    if (!(await this.#mayStart(world))) return "stale";
    begunJobs.note(this.#object.metadata);
    try {
      this.#run.wrote(jobs, await client.create(observedResources.jobs, manifest));
      return undefined;
    } catch (error) {
      if (isAlreadyExists(error)) return this.#withExisting(manifest, world);
      if (error instanceof KubernetesError && (error.status === 403 || isInvalid(error))) {
        return { ...world, jobRefusal: { message: error.message, final: isInvalid(error) } };
      }
      throw error;
    }
  }

  async #withExisting(manifest: Job, world: World): Promise<World | "stale"> {
    const existing = await found(this.#tools.client.get(observedResources.jobs, manifest.metadata?.name ?? ""));
    if (existing === undefined) return "stale";
    const job = readJob(existing);
    return { ...world, jobs: [...world.jobs.filter(({ name }) => name !== job.name), job] };
  }

  /** A job whose work was begun before may have ended, and its Job expired, without the caches knowing. */
  async #mayStart(world: World): Promise<boolean> {
    const { metadata } = this.#object;
    if (!(await this.#tools.begunJobs.mayInclude(metadata))) return true;
    const live = await found(this.#tools.client.get(compressionJobs, metadata.name));
    if (live === undefined || live.metadata.uid !== metadata.uid || live.metadata.deletionTimestamp) return false;
    const { status } = live.status ?? { status: "Pending" };
    if (live.spec.cancel || status === "Cancelling" || isTerminal(status)) return false;
    return status === "Pending" || (await this.#isStopped(world));
  }

  async #isStopped({ resource }: World): Promise<boolean> {
    const { client } = this.#tools;
    const labelSelector = `${resourceLabels.jobId}=${jobIdOf(resource)}`;
    for await (const { items } of client.list(observedResources.jobs, { labelSelector })) {
      if (items.map(readJob).some(({ end }) => end === undefined)) return false;
    }
    for await (const { items } of client.list(observedResources.pods, { labelSelector })) {
      if (items.map(readPod).some(mayRun)) return false;
    }
    return true;
  }

  async #setJobTtl({ name, seconds }: Action & { type: "setJobTtl" }): Promise<void> {
    const patch = { spec: { ttlSecondsAfterFinished: seconds } };
    const job = await found(this.#tools.client.patch(observedResources.jobs, name, patch));
    if (job !== undefined) this.#run.wrote(this.#tools.jobs, job);
  }

  async #removeLostPod({ name, uid, node }: Action & { type: "removeLostPod" }): Promise<void> {
    const { client } = this.#tools;
    const pod = await found(client.get(resources.pods, name));
    if (pod?.metadata.uid !== uid) return;
    await client.patch(resources.pods, name, { status: lostStatus(pod, node) }, { subresource: "status" });
    await this.#delete(resources.pods, { name, uid }, 0);
  }

  async #delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    { name, uid }: { readonly name: string; readonly uid: string },
    gracePeriodSeconds?: number,
  ): Promise<void> {
    const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    await found(this.#tools.client.delete(type, name, { propagationPolicy: "Foreground", uid, ...grace }));
  }
}

/** As the control plane marks pods of nodes that are gone: their Job sees a disruption, and makes another pod. */
function lostStatus({ status }: Pod, node: string): MergePatch<NonNullable<Pod["status"]>> {
  const reason = "NodeUnresponsive";
  const message = `The node "${node}" did not confirm that the pod stopped`;
  const others = status?.conditions?.filter(({ type }) => type !== "DisruptionTarget") ?? [];
  const lastTransitionTime = new Date().toISOString();
  const disruption = { type: "DisruptionTarget", status: "True", reason, message, lastTransitionTime };
  return { phase: "Failed", reason, message, conditions: [...others, disruption] };
}

/** Undefined where there is nothing of that name. */
async function found<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
