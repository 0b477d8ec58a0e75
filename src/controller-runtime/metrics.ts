import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ControllerObserver } from "./start-controller.ts";
import type { ResourceWatch } from "./watch-resource.ts";
import type { QueueObserver, QueueStats } from "./work-queue.ts";
import type { ClusterCall } from "../kubernetes/transport.ts";

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

const queueGauges: readonly (readonly [string, string, (stats: QueueStats) => number])[] = [
  ["workqueue_depth", "Keys that wait for a worker.", ({ depth }) => depth],
  ["workqueue_delayed", "Keys that wait for their time.", ({ delayed }) => delayed],
  ["workqueue_processing", "Keys that are worked on.", ({ processing }) => processing],
  [
    "workqueue_unfinished_work_seconds",
    "Work in progress.",
    ({ unfinishedSeconds }) => unfinishedSeconds,
  ],
  [
    "workqueue_longest_running_processor_seconds",
    "The longest work in progress.",
    ({ longestRunningSeconds }) => longestRunningSeconds,
  ],
];

/**
 * Registers the metrics of all controllers. Returns a function that creates the observer of one.
 */
function registerControllerMetrics(
  registry: Registry,
): (controllerName: string) => ControllerObserver {
  const queues = new Map<string, () => QueueStats>();
  registerQueueGauges(registry, queues);
  const observeQueue = registerQueueMetrics(registry);
  const results = new Histogram({
    name: "mos_reconcile_seconds",
    help: "Reconciliations by result.",
    labelNames: ["controller", "result"],
    buckets: secondsBuckets,
    registers: [registry],
  });
  return (controller) => ({
    queue: observeQueue(controller),
    trackQueue: (stats) => queues.set(controller, stats),
    reconciled: (result, seconds) => results.observe({ controller, result }, seconds),
  });
}

function registerQueueGauges(
  registry: Registry,
  queues: ReadonlyMap<string, () => QueueStats>,
): void {
  for (const [name, help, readFigure] of queueGauges) {
    registerGauge(registry, { name, help, label: "name" }, () =>
      Array.from(queues, ([queue, stats]) => [queue, readFigure(stats())]),
    );
  }
}

function registerQueueMetrics(registry: Registry): (name: string) => QueueObserver {
  const common = { labelNames: ["name"], registers: [registry] };
  const counter = (name: string, help: string) => new Counter({ name, help, ...common });
  const histogram = (name: string, help: string) =>
    new Histogram({ name, help, buckets: secondsBuckets, ...common });
  const adds = counter("workqueue_adds_total", "Keys that were added.");
  const retries = counter("workqueue_retries_total", "Keys that were put back after a failure.");
  const waited = histogram("workqueue_queue_duration_seconds", "How long keys waited.");
  const worked = histogram("workqueue_work_duration_seconds", "How long keys were worked on.");
  return (name) => ({
    added: () => adds.inc({ name }),
    retried: () => retries.inc({ name }),
    taken: (seconds) => waited.observe({ name }, seconds),
    done: (seconds) => worked.observe({ name }, seconds),
  });
}

/** Buckets of histograms of durations, in seconds. */
const secondsBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

interface GaugeOptions {
  readonly name: string;
  readonly help: string;
  /** Name of its only label. */
  readonly label: string;
}

/** Registers a gauge whose values, one for each label value, are read on every scrape. */
export function registerGauge(
  registry: Registry,
  { name, help, label }: GaugeOptions,
  read: () => Iterable<readonly [labelValue: string, number]>,
): void {
  const metric: Gauge = new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect: () => {
      metric.reset();
      for (const [value, number] of read()) metric.set({ [label]: value }, number);
    },
  });
}
