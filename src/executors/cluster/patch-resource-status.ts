import type { ReconcileRun, Requeue } from "../../controller-runtime/controller.ts";
import type { CompressionJobStatus } from "../../contract/compression-job.ts";
import { isTerminal } from "../../contract/status.ts";
import { type CompressionJobObject, compressionJobs } from "../../resources/custom-resources.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import { mergePatch } from "./merge-patch.ts";
import type { SyncContext } from "./sync-context.ts";
import { hasRecordedCondition, resourceStatus } from "./desired-status.ts";

interface StatusWrite {
  readonly id: string;
  readonly resource: Stored<CompressionJobObject>;
  readonly status: CompressionJobStatus;
}

/** Statuses that follow one another faster are written as one. */
const statusIntervalMs = 1_000;
const telemetryIntervalMs = 5_000;

/** Writes a resource's status where it differs, not too often; gives when it has to be looked at again. */
export async function patchResourceStatus(
  context: SyncContext,
  wanted: StatusWrite,
  run: ReconcileRun,
): Promise<Requeue | undefined> {
  const { id, resource, status } = wanted;
  const before = resourceStatus(resource);
  const patch = mergePatch(before, status);
  if (patch === undefined) return undefined;
  const sinceMs = performance.now() - (context.statusWrittenAt.get(id) ?? -Infinity);
  const isStatusChange =
    status.status !== before.status ||
    hasRecordedCondition(status) !== hasRecordedCondition(before);
  const intervalMs = !isStatusChange
    ? telemetryIntervalMs
    : isTerminal(status.status)
      ? 0
      : statusIntervalMs;
  if (sinceMs < intervalMs) return { requeueAfterMs: intervalMs - sinceMs };
  const { name, resourceVersion } = resource.metadata;
  const written = await context.client.patch(
    compressionJobs,
    name,
    { status: patch },
    { subresource: "status", resourceVersion },
  );
  context.statusWrittenAt.set(id, performance.now());
  run.expectWrite(context.jobs, written);
  return undefined;
}
