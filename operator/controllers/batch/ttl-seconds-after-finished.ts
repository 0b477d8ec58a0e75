import type { Clock } from "../../../src/controller-runtime/clock.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import type { Stored } from "../../../src/kubernetes/resources.ts";
import { type BatchObject, batches } from "../../../src/resources/custom-resources.ts";

interface ExpiringBatch {
  readonly client: KubernetesClient;
  readonly batch: Stored<BatchObject>;
  readonly clock: Clock;
  /** Of batches without one of their own; undefined where they stay for good. */
  readonly resourceTtlSeconds?: number | undefined;
}

/**
 * `spec.ttlSecondsAfterFinished`: deletes the batch so long after its end. Where it is too early,
 * the milliseconds until then.
 */
export async function deleteExpiredBatch({
  client,
  batch,
  clock,
  resourceTtlSeconds,
}: ExpiringBatch): Promise<number | undefined> {
  const { ttlSecondsAfterFinished: ttlSeconds = resourceTtlSeconds } = batch.spec;
  const { finishedAt } = batch.status ?? {};
  if (ttlSeconds === undefined || finishedAt === undefined) return undefined;
  const waitMs = Date.parse(finishedAt) + ttlSeconds * 1_000 - clock.date().getTime();
  if (waitMs > 0) return waitMs;
  const { name, uid } = batch.metadata;
  await client.delete(batches, name, { propagationPolicy: "Background", uid });
  return undefined;
}
