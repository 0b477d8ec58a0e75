import { once } from "node:events";
import type { KubernetesClient } from "../kubernetes/kubernetes-client.ts";
import {
  acquireLeadership,
  type ElectionTiming,
  fenceWrites,
  type Leadership,
} from "./leadership.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Controller } from "./controller.ts";
import { createEventRecorder, type EventRecorder } from "./event-recorder.ts";
import { startHealthServer } from "./health-server.ts";
import type { Log } from "../log/json-log.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import { startController } from "./start-controller.ts";
import type { ResourceWatch } from "./watch-resource.ts";

/** Dependencies of the controllers of the leader. */
interface LeaderDependencies {
  /** Its writes fail when the leadership may be lost. */
  readonly client: KubernetesClient;
  readonly events: EventRecorder;
}

export interface RunOptions {
  readonly client: KubernetesClient;
  /** The component that reports events. */
  readonly component: string;
  /** All watches that controllers read. They run already, and are stopped at the end. */
  readonly watched: readonly ResourceWatch[];
  readonly controllers: (leader: LeaderDependencies) => readonly Controller[];
  readonly election: {
    readonly name: string;
    readonly identity: string;
    readonly timing?: ElectionTiming | undefined;
  };
  readonly health: { readonly host: string | undefined; readonly port: number };
  readonly metrics: RuntimeMetrics;
  readonly log: Log;
}

/**
 * Waits for the caches and the leadership and runs the controllers until `stop`. Then it waits for
 * running reconciliations, sends the remaining events and releases the Lease. Throws
 * `NotLeaderError` when the leadership was lost before.
 */
export async function runControllers(options: RunOptions, stop: AbortSignal): Promise<void> {
  const { client, watched, election, health, metrics, log } = options;
  const clock = systemClock;
  await using stack = new AsyncDisposableStack();
  for (const each of watched) stack.defer(() => each.stop());
  metrics.trackCaches(watched);
  const server = await startHealthServer({ ...health, watched, metrics });
  stack.defer(() => server.close());
  log("info", "Probes and metrics are answered", { port: server.port });

  let leadership: Leadership | undefined;
  metrics.trackLeadership(election.name, () => leadership?.isLeader() ?? false);
  try {
    await waitUnlessAborted(stop, Promise.all(watched.map(({ synced }) => synced)));
    log("info", "Caches are filled, waiting for the leadership", { lease: election.name });
    leadership = await acquireLeadership({ ...election, client, clock, log }, stop);
  } catch (error) {
    if (stop.aborted) return;
    throw error;
  }
  log("info", "Leading", { lease: election.name, identity: election.identity });
  await runAsLeader(leadership, options, { clock, stop });
}

async function runAsLeader(
  leadership: Leadership,
  options: RunOptions,
  run: { clock: Clock; stop: AbortSignal },
): Promise<void> {
  const { client, component, controllers, metrics, log } = options;
  const { clock, stop } = run;
  const fenced = fenceWrites(client, leadership);
  const events = createEventRecorder({ client: fenced, component, clock, log });
  const running = controllers({ client: fenced, events }).map((controller) => {
    const observer = metrics.createControllerObserver(controller.name);
    return startController(controller, { clock, log, observer });
  });
  const end = AbortSignal.any([stop, leadership.lost]);
  if (!end.aborted) await once(end, "abort");
  log("info", "Stopping: running reconciliations end");
  await Promise.all(running.map((controller) => controller.stop()));
  await events.close();
  await leadership.release();
  leadership.lost.throwIfAborted();
}

/** Waits for the work, or throws when the signal is aborted before. */
async function waitUnlessAborted(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  await Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", abort));
}
