import type { ActionContext, ActionResult } from "./action-context.ts";
import { areWorkersStopped } from "./are-workers-stopped.ts";
import { createWorkerJob, findReadyNodes } from "./create-worker-job.ts";
import {
  recordFinalizer,
  syncRequestAnnotation,
} from "../../../../src/contract/custom-resources/resource-labels.ts";
import type {
  DeleteOptions,
  KubernetesClient,
  MergePatch,
  PatchOptions,
} from "../../../../src/kubernetes/kubernetes-client.ts";
import { ignoreNotFound } from "../../../../src/kubernetes/kubernetes-error.ts";
import { findNamespacePhase } from "../../../../src/kubernetes/namespaces.ts";
import {
  type KubernetesObject,
  type Pod,
  resources,
  type ResourceType,
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
import type { ObservedState } from "../observe/observed-state.ts";

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
      return patchWorkerJob(context, action.name, { spec: { activeDeadlineSeconds: 1 } });
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

const reason = "NodeUnresponsive";

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
