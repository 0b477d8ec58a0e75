import type { ReconcileRun, Requeue } from "../../operator/runtime/controller.ts";
import type { CompressionJobStatus } from "../contract/custom-resources.ts";
import { isTerminal } from "../contract/status.ts";
import { type CompressionJobObject, compressionJobs } from "../kubernetes/custom-resources.ts";
import type { Stored } from "../kubernetes/resources.ts";
import { mergePatch } from "./merge-patch.ts";
import type { Mirror } from "./mirror.ts";
import { isRecorded, statusOf } from "./projected-status.ts";

interface Wanted {
  readonly id: string;
  readonly resource: Stored<CompressionJobObject>;
  readonly status: CompressionJobStatus;
}

/** Statuses that follow one another faster are written as one. */
const statusEveryMs = 1_000;
const figuresEveryMs = 5_000;

/** Writes a resource's status where it differs, not too often; gives when it has to be looked at again. */
export async function writeStatus(mirror: Mirror, wanted: Wanted, run: ReconcileRun): Promise<Requeue | undefined> {
  const { id, resource, status } = wanted;
  const before = statusOf(resource);
  const patch = mergePatch(before, status);
  if (patch === undefined) return undefined;
  const sinceMs = performance.now() - (mirror.writtenAt.get(id) ?? -Infinity);
  const isNews = status.status !== before.status || isRecorded(status) !== isRecorded(before);
  const everyMs = !isNews ? figuresEveryMs : isTerminal(status.status) ? 0 : statusEveryMs;
  if (sinceMs < everyMs) return { requeueAfterMs: everyMs - sinceMs };
  const { name, resourceVersion } = resource.metadata;
  const written = await mirror.client.patch(
    compressionJobs,
    name,
    { status: patch },
    { subresource: "status", resourceVersion },
  );
  mirror.writtenAt.set(id, performance.now());
  run.wrote(mirror.jobs, written);
  return undefined;
}
