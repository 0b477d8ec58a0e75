import type { BatchDependencies } from "../../../operator/controllers/batch/batch-reconciliation.ts";
import { createBatchController } from "../../../operator/controllers/batch/batch-controller.ts";
import { systemClock } from "../../../src/controller-runtime/clock.ts";
import { startController } from "../../../src/controller-runtime/start-controller.ts";
import type { ObjectEvent } from "../../../src/controller-runtime/event-recorder.ts";
import {
  watchResource,
  type WatchedResource,
} from "../../../src/controller-runtime/watch-resource.ts";
import type { CompressionJobStatus } from "../../../src/contract/custom-resources/compression-job.ts";
import {
  type BatchObject,
  batches as batchType,
  type CompressionJobObject,
  compressionJobs as compressionJobType,
} from "../../../src/resources/custom-resources.ts";
import type { KubernetesClient } from "../../../src/kubernetes/kubernetes-client.ts";
import type { KubernetesObject, Stored } from "../../../src/kubernetes/resources.ts";
import { ChangeSignal } from "../../support/until.ts";

export interface RunningBatches extends AsyncDisposable {
  readonly batches: WatchedResource<BatchObject>;
  readonly compressionJobs: WatchedResource<CompressionJobObject>;
  readonly events: readonly ObjectEvent[];
  readonly logged: readonly string[];
  readonly stop: () => Promise<void>;
}

/** Runs the batch controller with caches of its own. */
export async function runBatches(
  client: KubernetesClient,
  settings: Pick<BatchDependencies, "resourceTtlSeconds"> = {},
): Promise<RunningBatches> {
  const logged: string[] = [];
  const log = (level: string, message: string, fields?: Readonly<Record<string, unknown>>) =>
    void logged.push(`${level}: ${message} ${String(fields?.["error"])}`);
  const batches = watchResource<BatchObject>({ client, type: batchType, log });
  const compressionJobs = watchResource<CompressionJobObject>({
    client,
    type: compressionJobType,
    log,
  });
  await Promise.all([batches.synced, compressionJobs.synced]);
  const events: ObjectEvent[] = [];
  const recorder = {
    record: (_type: unknown, _object: unknown, event: ObjectEvent) => void events.push(event),
    close: async () => {},
  };
  const controller = createBatchController({
    ...settings,
    client,
    batches,
    compressionJobs,
    events: recorder,
    clock: systemClock,
  });
  const running = startController(controller, { clock: systemClock, log });
  const stop = async () => {
    await running.stop();
    await Promise.all([batches.stop(), compressionJobs.stop()]);
  };
  return { batches, compressionJobs, events, logged, stop, [Symbol.asyncDispose]: stop };
}

/** Resolves with what `find` gives as soon as the cache has that. */
export async function untilSeen<T extends KubernetesObject, Found>(
  watched: WatchedResource<T>,
  find: (objects: readonly Stored<T>[]) => Found | undefined,
): Promise<Found> {
  const changed = new ChangeSignal();
  const unsubscribe = watched.onChange(changed.notify);
  const findInCache = () =>
    find(
      [...watched.cache.values()].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)),
    );
  return changed.until(`the cache fits ${String(find)}`, findInCache).finally(unsubscribe);
}

/** Plays what becomes of a job. */
export async function playJob(
  client: KubernetesClient,
  name: string,
  status: CompressionJobStatus,
): Promise<void> {
  await client.patch(compressionJobType, name, { status }, { subresource: "status" });
}

/** Plays the end of whatever a job still holds, so that it can be deleted. */
export async function removeFinalizers(client: KubernetesClient, name: string): Promise<void> {
  await client.patch(compressionJobType, name, { metadata: { finalizers: null } });
}
