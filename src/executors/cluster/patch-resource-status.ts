import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import type { CompressionJobStatus } from "../../contract/custom-resources/compression-job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { type CompressionJobObject, compressionJobs } from "../../resources/custom-resources.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import { mergePatch } from "./merge-patch.ts";
import type { SyncContext } from "./sync-context.ts";
import { resourceStatus } from "./desired-status.ts";

interface StatusWrite {
  readonly id: string;
  readonly resource: Stored<CompressionJobObject>;
  readonly status: CompressionJobStatus;
}

/** Faster changes are written together. */
const statusIntervalMs = 1_000;

/**
 * Writes the status of a resource if it differs; returns when to retry if that would be too soon.
 */
export async function patchResourceStatus(
  { client, jobs, statusWrittenAt }: SyncContext,
  { id, resource, status }: StatusWrite,
  run: ReconcileRun,
): Promise<Requeue | undefined> {
  const before = resourceStatus(resource);
  const patch = mergePatch(before, status);
  if (patch === undefined) return undefined;
  const sinceMs = performance.now() - (statusWrittenAt.get(id) ?? -Infinity);
  const intervalMs = isTerminal(status.status) ? 0 : statusIntervalMs;
  if (sinceMs < intervalMs) return { requeueAfterMs: intervalMs - sinceMs };
  const { name, namespace, resourceVersion } = resource.metadata;
  const options = { subresource: "status", resourceVersion } as const;
  const written = await client
    .inNamespace(namespace)
    .patch(compressionJobs, name, { status: patch }, options);
  statusWrittenAt.set(id, performance.now());
  run.expectWrite(jobs, written);
  return undefined;
}
