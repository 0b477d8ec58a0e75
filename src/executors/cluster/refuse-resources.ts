import type { CompressionJobStatus } from "../../contract/custom-resources/compression-job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { ReconcileRun } from "../../controller-runtime/controller.ts";
import { requireNamespace } from "../../kubernetes/namespaces.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { ClusterJob } from "../../records/jobs/cluster-records.ts";
import { type CompressionJobObject, compressionJobs } from "../../resources/custom-resources.ts";
import { namespaceProject } from "../../resources/served-namespaces.ts";
import { resourceStatus, withConditions } from "./desired-status.ts";
import { mergePatch } from "./custom-resources.ts";
import type { SyncContext } from "./sync-context.ts";

type Resource = Stored<CompressionJobObject>;

/** Fails the resources with a job's id that cannot be it, and says so in each. */
export async function refuseResources(
  context: SyncContext,
  { resources, record }: { resources: readonly Resource[]; record: ClusterJob | undefined },
  run: ReconcileRun,
): Promise<void> {
  for (const resource of resources) {
    const message = refusal(context, resource, record);
    if (message !== undefined) await refuse(context, { resource, message }, run);
  }
}

function refusal(
  { namespaces }: SyncContext,
  resource: Resource,
  record: ClusterJob | undefined,
): string | undefined {
  const namespace = requireNamespace(resource);
  if (namespaceProject(namespaces, namespace) === undefined) {
    return `Namespace "${namespace}" has no project: create the resource in another namespace`;
  }
  if (record === undefined || record.resource.namespace === namespace) return undefined;
  return `The id "${record.job.id}" is that of another job: create the resource without its label`;
}

async function refuse(
  { client, jobs, now }: SyncContext,
  { resource, message }: { resource: Resource; message: string },
  run: ReconcileRun,
): Promise<void> {
  const before = resourceStatus(resource);
  const failed = isTerminal(before.status) ? before : failedStatus(before, message, now());
  const status = withConditions(failed, { resource, allRecorded: true, now: now() });
  const patch = mergePatch(before, status);
  if (patch === undefined) return;
  const { name, namespace, resourceVersion } = resource.metadata;
  const options = { subresource: "status", resourceVersion } as const;
  const own = client.inNamespace(namespace);
  run.expectWrite(jobs, await own.patch(compressionJobs, name, { status: patch }, options));
}

function failedStatus(
  before: CompressionJobStatus,
  message: string,
  now: Date,
): CompressionJobStatus {
  const at = now.toISOString();
  const code = "resource_invalid";
  return {
    ...before,
    status: "Failed",
    statusReason: code,
    statusMessage: message,
    finishedAt: at,
    transitions: [...(before.transitions ?? []), { status: "Failed", at, reason: code, message }],
    error: { code, message },
  };
}
