import { collectDefaultMetrics, Histogram, Registry } from "prom-client";
import type { ClusterCall } from "../kubernetes/transport.ts";
import { registerControllerMetrics } from "./controller-metrics.ts";
import { registerGauge } from "./register-gauge.ts";
import { secondsBuckets } from "./seconds-buckets.ts";
import type { ControllerObserver } from "./start-controller.ts";
import type { ResourceWatch } from "./watch-resource.ts";

/**
 * Metrics of the process. Those of queues and of the leadership have the names of Kubernetes' own
 * controllers.
 */
export interface RuntimeMetrics {
  /** Where parts of the process register metrics of their own. */
  readonly registry: Registry;
  /** Observes the calls of a Kubernetes client. */
  readonly onCall: (call: ClusterCall) => void;
  createControllerObserver(controllerName: string): ControllerObserver;
  trackCaches(watched: readonly ResourceWatch[]): void;
  trackLeadership(lease: string, isLeader: () => boolean): void;
  /** In the Prometheus text format. */
  text(): Promise<string>;
}

/** Registers the metrics of a process that has controllers. */
export function createRuntimeMetrics(registry = createProcessRegistry()): RuntimeMetrics {
  const calls = new Histogram({
    name: "mos_kubernetes_call_seconds",
    help: "Calls of the API server.",
    labelNames: ["verb", "resource", "code"],
    buckets: secondsBuckets,
    registers: [registry],
  });
  return {
    registry,
    onCall: ({ verb, resource, code, seconds }) => calls.observe({ verb, resource, code }, seconds),
    createControllerObserver: registerControllerMetrics(registry),
    trackCaches: (watched) => registerCacheGauges(registry, watched),
    trackLeadership: (lease, isLeader) => registerLeadershipGauge(registry, lease, isLeader),
    text: () => registry.metrics(),
  };
}

function createProcessRegistry(): Registry {
  const registry = new Registry();
  // Includes the lag of the event loop.
  collectDefaultMetrics({ register: registry });
  return registry;
}

function registerLeadershipGauge(registry: Registry, lease: string, isLeader: () => boolean): void {
  const name = "leader_election_master_status";
  const help = "1 in the process that leads.";
  registerGauge(registry, { name, help, label: "name" }, () => [[lease, isLeader() ? 1 : 0]]);
}

function registerCacheGauges(registry: Registry, watched: readonly ResourceWatch[]): void {
  const label = "resource";
  registerGauge(registry, { name: "mos_cache_objects", help: "Objects in the cache.", label }, () =>
    watched.map(({ resource, size }) => [resource, size]),
  );
  registerGauge(
    registry,
    { name: "mos_cache_silence_seconds", help: "Since the API server sent anything.", label },
    () => watched.map(({ resource, secondsSinceReceived }) => [resource, secondsSinceReceived]),
  );
}
