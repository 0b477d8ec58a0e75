import { once } from "node:events";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { campaign } from "./campaign.ts";
import { type Clock, systemClock } from "./clock.ts";
import { type Controller, startController } from "./controller.ts";
import { createEventRecorder, type EventRecorder } from "./event-recorder.ts";
import { fenceWrites } from "./fence-writes.ts";
import { startHealthServer } from "./health-server.ts";
import type { Log } from "./json-log.ts";
import type { Leadership } from "./leadership.ts";
import type { ElectionTiming } from "./lease-record.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import type { Watched } from "./watch-resource.ts";

/** What the controllers of the leader work with. */
export interface LeaderTools {
  /** Writes with it fail once the leadership may be over. */
  readonly client: KubernetesClient;
  readonly events: EventRecorder;
}

export interface RunOptions {
  readonly client: KubernetesClient;
  /** Whose events these are. */
  readonly component: string;
  /** Everything that controllers read; runs already, and is stopped at the end. */
  readonly watched: readonly Watched[];
  readonly controllers: (leader: LeaderTools) => readonly Controller[];
  readonly election: { readonly name: string; readonly identity: string; readonly timing?: ElectionTiming };
  readonly health: { readonly host: string; readonly port: number };
  readonly metrics: RuntimeMetrics;
  readonly log: Log;
}

/**
 * Fills the caches, waits for the leadership and runs the controllers, until `stop`: then nothing more is taken in, what is being
 * reconciled ends, events are sent and the Lease is released. Throws `NotLeaderError` when the leadership was lost before.
 */
export async function runControllers(options: RunOptions, stop: AbortSignal): Promise<void> {
  const { client, watched, election, health, metrics, log } = options;
  const clock = systemClock;
  await using stack = new AsyncDisposableStack();
  for (const each of watched) stack.defer(() => each.stop());
  metrics.watchResources(watched);
  const server = await startHealthServer({ ...health, watched, metrics });
  stack.defer(() => server.close());
  log("info", "Probes and metrics are answered", { port: server.port });

  let leadership: Leadership | undefined;
  metrics.watchLeadership(election.name, () => leadership?.isLeader() ?? false);
  try {
    await untilAborted(stop, Promise.all(watched.map(({ synced }) => synced)));
    log("info", "Caches are filled, waiting for the leadership", { lease: election.name });
    leadership = await campaign({ ...election, client, clock, log }, stop);
  } catch (error) {
    if (stop.aborted) return;
    throw error;
  }
  log("info", "Leading", { lease: election.name, identity: election.identity });
  await lead(leadership, options, { clock, stop });
}

async function lead(
  leadership: Leadership,
  options: RunOptions,
  run: { clock: Clock; stop: AbortSignal },
): Promise<void> {
  const { client, component, controllers, metrics, log } = options;
  const { clock, stop } = run;
  const fenced = fenceWrites(client, leadership);
  const events = createEventRecorder({ client: fenced, component, clock, log });
  const running = controllers({ client: fenced, events }).map((controller) =>
    startController(controller, { clock, log, observer: metrics.observerOf(controller.name) }),
  );
  const over = AbortSignal.any([stop, leadership.lost]);
  if (!over.aborted) await once(over, "abort");
  log("info", "Stopping: what is being reconciled ends");
  await Promise.all(running.map((controller) => controller.stop()));
  await events.close();
  await leadership.release();
  leadership.lost.throwIfAborted();
}

/** Waits for the work, or throws when the signal is aborted before. */
async function untilAborted(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  await Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", abort));
}
