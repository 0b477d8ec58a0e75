import { syncRequestAnnotation } from "../../../../src/contract/custom-resources/resource-labels.ts";
import { compressionJobs } from "../../../../src/resources/custom-resources.ts";
import { resources } from "../../../../src/kubernetes/resources.ts";
import type { Action } from "../decide/decision.ts";
import type { ObservedState } from "../observe/observed-state.ts";
import type { ActionContext, ActionResult } from "./action-context.ts";
import { areWorkersStopped } from "./are-workers-stopped.ts";
import { createWorkerJob } from "./create-worker-job.ts";
import { deleteInBackground } from "./delete-in-background.ts";
import { findReadyNodes } from "./find-ready-nodes.ts";
import { setFinalizer } from "./set-finalizer.ts";
import { patchCompressionJob } from "./patch-compression-job.ts";
import { patchWorkerJob } from "./patch-worker-job.ts";
import { removeLostPod } from "./remove-lost-pod.ts";

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
    case "setWorkerJobTtl":
      return patchWorkerJob(context, action.name, {
        spec: { ttlSecondsAfterFinished: action.seconds },
      });
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
