import type { StartedJobs } from "./started-jobs.ts";
import {
  recordFinalizer,
  resourceLabels,
  syncRequestAnnotation,
} from "../../../../src/contract/custom-resources/resource-labels.ts";
import { isTerminal } from "../../../../src/contract/jobs/status.ts";
import type { ReconcileRun } from "../../../../src/controller-runtime/controller.ts";
import type { EventRecorder } from "../../../../src/controller-runtime/event-recorder.ts";
import type { WatchedResource } from "../../../../src/controller-runtime/watch-resource.ts";
import type {
  DeleteOptions,
  KubernetesClient,
  MergePatch,
  PatchOptions,
} from "../../../../src/kubernetes/kubernetes-client.ts";
import {
  ignoreNotFound,
  isAlreadyExists,
  isInvalid,
  isPolicyRefusal,
  isRefusal,
} from "../../../../src/kubernetes/kubernetes-error.ts";
import { findNamespacePhase } from "../../../../src/kubernetes/namespaces.ts";
import {
  type KubernetesJob,
  type KubernetesObject,
  type Pod,
  resources,
  type ResourceType,
  type Stored,
} from "../../../../src/kubernetes/resources.ts";
import {
  type CompressionJobObject,
  compressionJobs,
} from "../../../../src/resources/custom-resources.ts";
import {
  observedResources,
  type ObservedWorkerJob,
} from "../../../../src/resources/observed-resources.ts";
import type { Action } from "../decide/decision.ts";
import { hasReportedEnd } from "../decide/job-end.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import { endingDeadlineSeconds, toWorkerJob } from "../observe/worker-job.ts";
import { isWorkerPod, mayRun, toWorkerPod } from "../observe/worker-pod.ts";

export interface ActionDependencies {
  readonly client: KubernetesClient;
  readonly compressionJobs: WatchedResource<CompressionJobObject>;
  readonly workerJobs: WatchedResource<ObservedWorkerJob>;
  readonly events: EventRecorder;
  readonly startedJobs: StartedJobs;
}

/** What the actions of one reconciliation share. */
export interface ActionContext extends ActionDependencies {
  readonly run: ReconcileRun;
  /** As the last write returned it. */
  resource: Stored<CompressionJobObject>;
}

/**
 * Undefined where the next action follows; `stale` where the caches are behind the API server; the
 * state to decide on again where the action observed more.
 */
type ActionResult = ObservedState | "stale" | undefined;

export async function executeAction(
  context: ActionContext,
  action: Action,
  observed: ObservedState,
): Promise<ActionResult> {
  const { client } = context;
  switch (action.type) {
    case "writeStatus":
      return patchCompressionJob(context, { status: action.patch }, { subresource: "status" });
    case "setFinalizer":
      return setFinalizer(context, action);
    case "confirmStopped":
      return (await areWorkersStopped(client, observed)) ? undefined : "stale";
    case "createWorkerJob":
      return createWorkerJob(context, action.manifest, observed);
    case "endWorkerJob":
      return patchWorkerJob(context, action.name, {
        spec: { activeDeadlineSeconds: endingDeadlineSeconds },
      });
    case "requestSync":
      return requestSync(context, action);
    case "deleteWorkerJob":
      return deleteInBackground(client, resources.jobs, action);
    case "deletePod":
      return deleteInBackground(client, resources.pods, action);
    case "observeNodes":
      return { ...observed, readyNodes: await findReadyNodes(client, observed) };
    case "removeLostPod":
      return removeLostPod(client, action);
    case "deleteResource":
      return deleteInBackground(client, compressionJobs, context.resource.metadata);
    case "recordEvent":
      return recordEvent(context, action);
  }
}

async function createWorkerJob(
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
    if (isRefusal(error)) {
      const final = isInvalid(error) && !isPolicyRefusal(error);
      return { ...observed, workerJobRejection: { message: error.message, final } };
    }
    throw error;
  }
}

async function observeExisting(
  { client }: ActionContext,
  manifest: KubernetesJob,
  observed: ObservedState,
): Promise<ActionResult> {
  const name = manifest.metadata?.name;
  if (name === undefined) throw new TypeError("The manifest of a worker Job has no name");
  const existing = await ignoreNotFound(client.get(observedResources.jobs, name));
  if (existing === undefined) return "stale";
  const workerJob = toWorkerJob(existing);
  const others = observed.workerJobs.filter(({ name }) => name !== workerJob.name);
  return { ...observed, workerJobs: [...others, workerJob] };
}

/**
 * Asks the API server about a job whose work may have started before: it may have ended, and its
 * worker Job may have expired, while the caches were behind.
 */
async function mayStartWork(
  { client, startedJobs, resource: { metadata } }: ActionContext,
  observed: ObservedState,
): Promise<boolean> {
  if (!(await startedJobs.mayInclude(metadata))) return true;
  const live = await ignoreNotFound(client.get(compressionJobs, metadata.name));
  if (live?.metadata.uid !== metadata.uid || live.metadata.deletionTimestamp) return false;
  const { status, startedAt, report } = live.status ?? { status: "Pending" };
  if (live.spec.cancel || status === "Cancelling" || isTerminal(status)) return false;
  if (hasReportedEnd(report)) return false;
  const hasBegun =
    status !== "Pending" || startedAt !== undefined || report?.startedAt !== undefined;
  return !hasBegun || (await areWorkersStopped(client, observed));
}

/** Asks the API server, not a cache. Jobs and pods under other accounts run no workers. */
async function areWorkersStopped(
  client: KubernetesClient,
  { jobId, settings }: Pick<ObservedState, "jobId" | "settings">,
): Promise<boolean> {
  const labelSelector = `${resourceLabels.jobId}=${jobId}`;
  for await (const { items } of client.list(observedResources.jobs, { labelSelector })) {
    const workerJobs = items.map(toWorkerJob);
    const mayGoOn = workerJobs.some(
      ({ serviceAccount, end }) => serviceAccount === settings.serviceAccount && end === undefined,
    );
    if (mayGoOn) return false;
  }
  for await (const { items } of client.list(observedResources.pods, { labelSelector })) {
    const workers = items.filter((pod) => isWorkerPod(pod, settings));
    if (workers.some((pod) => mayRun(toWorkerPod(pod, 0)))) return false;
  }
  return true;
}

/** Of the nodes of a job's pods, those that are there and report to the control plane. */
async function findReadyNodes(
  client: KubernetesClient,
  { pods }: ObservedState,
): Promise<ReadonlySet<string>> {
  const names = new Set(pods.flatMap(({ node }) => node ?? []));
  const ready = await Promise.all(
    Array.from(names, async (name) => {
      const node = await ignoreNotFound(client.get(resources.nodes, name));
      const conditions = node?.status?.conditions ?? [];
      return conditions.some(({ type, status }) => type === "Ready" && status === "True")
        ? [name]
        : [];
    }),
  );
  return new Set(ready.flat());
}

function requestSync(
  context: ActionContext,
  { name, at }: Action & { type: "requestSync" },
): Promise<undefined> {
  const annotations = { [syncRequestAnnotation]: new Date(at).toISOString() };
  return patchWorkerJob(context, name, { metadata: { annotations } });
}

function recordEvent(
  { events, resource }: ActionContext,
  { warning, reason, message }: Action & { type: "recordEvent" },
): undefined {
  const type = warning ? "Warning" : "Normal";
  events.record(compressionJobs, resource, { type, reason, message });
}

async function patchWorkerJob(
  { client, run, workerJobs }: ActionContext,
  name: string,
  patch: MergePatch<ObservedWorkerJob>,
): Promise<undefined> {
  const workerJob = await ignoreNotFound(client.patch(observedResources.jobs, name, patch));
  if (workerJob !== undefined) run.expectWrite(workerJobs, workerJob);
}

/** Fails with a conflict where the resource has changed since it was observed. */
async function patchCompressionJob(
  context: ActionContext,
  patch: MergePatch<CompressionJobObject>,
  options: PatchOptions = {},
): Promise<"stale" | undefined> {
  const { client, run } = context;
  const { name, resourceVersion } = context.resource.metadata;
  const call = client.patch<CompressionJobObject>(compressionJobs, name, patch, {
    ...options,
    resourceVersion,
  });
  const changed = await ignoreNotFound(call);
  if (changed === undefined) return "stale";
  context.resource = changed;
  run.expectWrite(context.compressionJobs, changed);
  return undefined;
}

export async function setFinalizer(
  context: ActionContext,
  { present }: { readonly present: boolean },
): Promise<"stale" | undefined> {
  const { finalizers = [] } = context.resource.metadata;
  const others = finalizers.filter((finalizer) => finalizer !== recordFinalizer);
  return patchCompressionJob(context, {
    metadata: { finalizers: present ? [...others, recordFinalizer] : others },
  });
}

interface Deletion extends Pick<DeleteOptions, "gracePeriodSeconds"> {
  readonly name: string;
  readonly uid: string;
}

/**
 * Deletes an object at once. In the foreground it would wait for the garbage collector, which takes
 * minutes in a busy cluster.
 */
export async function deleteInBackground<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  { name, uid, gracePeriodSeconds }: Deletion,
): Promise<undefined> {
  const options: DeleteOptions = { propagationPolicy: "Background", uid };
  const withGrace = gracePeriodSeconds === undefined ? options : { ...options, gracePeriodSeconds };
  await ignoreNotFound(client.delete(type, name, withGrace));
}

/**
 * Whether the resource is being deleted with its namespace, whose pods have ended before. Nobody
 * can wait then for the job's end: the rights in the namespace go with it. Of the operator's own
 * namespace all resources are released when the operator ends.
 */
export async function isNamespaceTerminating(
  { client, resource }: ActionContext,
  ownNamespace: string,
): Promise<boolean> {
  if (resource.metadata.deletionTimestamp === undefined) return false;
  if (client.namespace === ownNamespace) return false;
  return (await findNamespacePhase(client)) !== "active";
}

type PodStatus = NonNullable<Pod["status"]>;

export async function removeLostPod(
  client: KubernetesClient,
  { name, uid, node }: Action & { type: "removeLostPod" },
): Promise<undefined> {
  const pod = await ignoreNotFound(client.get(resources.pods, name));
  if (pod?.metadata.uid !== uid) return;
  const status = lostPodStatus(pod, node);
  await client.patch(resources.pods, name, { status }, { subresource: "status" });
  await deleteInBackground(client, resources.pods, { name, uid, gracePeriodSeconds: 0 });
}

/** As the control plane marks pods of deleted nodes: to the Job it is a disruption. */
function lostPodStatus({ status }: Pod, node: string): MergePatch<PodStatus> {
  const reason = "NodeUnresponsive";
  const message = `The node "${node}" did not confirm that the pod stopped`;
  const disruption = {
    type: "DisruptionTarget",
    status: "True",
    reason,
    message,
    lastTransitionTime: new Date().toISOString(),
  };
  const others = status?.conditions?.filter(({ type }) => type !== disruption.type) ?? [];
  return { phase: "Failed", reason, message, conditions: [...others, disruption] };
}
