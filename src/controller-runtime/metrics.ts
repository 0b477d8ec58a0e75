import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ClusterCall } from "../kubernetes/transport.ts";
import type { ControllerObserver } from "./controller.ts";
import type { ResourceWatch } from "./watch-resource.ts";
import type { QueueStats } from "./work-queue.ts";

/** What monitoring can know of the process. Queues and leadership have the names that Kubernetes' own controllers use. */
export interface RuntimeMetrics {
  /** Takes the calls of a Kubernetes client. */
  readonly onCall: (call: ClusterCall) => void;
  createControllerObserver(controllerName: string): ControllerObserver;
  trackCaches(watched: readonly ResourceWatch[]): void;
  trackLeadership(lease: string, isLeader: () => boolean): void;
  /** In Prometheus' text format. */
  text(): Promise<string>;
}

const secondsBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

export function createRuntimeMetrics(): RuntimeMetrics {
  const registry = new Registry();
  // The lag of the event loop is one of them.
  collectDefaultMetrics({ register: registry });
  const calls = new Histogram({
    name: "mos_kubernetes_call_seconds",
    help: "Calls of the API server.",
    labelNames: ["verb", "resource", "code"],
    buckets: secondsBuckets,
    registers: [registry],
  });
  return {
    onCall: ({ verb, resource, code, seconds }) => calls.observe({ verb, resource, code }, seconds),
    createControllerObserver: registerControllerMetrics(registry),
    trackCaches: (watched) => registerCacheGauges(registry, watched),
    trackLeadership: (lease, isLeader) => {
      const help = "1 in the process that leads.";
      registerGauge(
        registry,
        { name: "leader_election_master_status", help, label: "name" },
        () => [[lease, isLeader() ? 1 : 0]],
      );
    },
    text: () => registry.metrics(),
  };
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

function registerControllerMetrics(registry: Registry): (name: string) => ControllerObserver {
  const queues = new Map<string, () => QueueStats>();
  for (const [name, help, readFigure] of queueGauges) {
    registerGauge(registry, { name, help, label: "name" }, () =>
      Array.from(queues, ([queue, stats]) => [queue, readFigure(stats())]),
    );
  }
  const registers = [registry];
  const labelNames = ["name"];
  const buckets = secondsBuckets;
  const adds = new Counter({
    name: "workqueue_adds_total",
    help: "Keys that were added.",
    labelNames,
    registers,
  });
  const retries = new Counter({
    name: "workqueue_retries_total",
    help: "Keys that were put back after a failure.",
    labelNames,
    registers,
  });
  const waited = new Histogram({
    name: "workqueue_queue_duration_seconds",
    help: "How long keys waited.",
    labelNames,
    buckets,
    registers,
  });
  const worked = new Histogram({
    name: "workqueue_work_duration_seconds",
    help: "How long keys were worked on.",
    labelNames,
    buckets,
    registers,
  });
  const results = new Histogram({
    name: "mos_reconcile_seconds",
    help: "Reconciliations by result.",
    labelNames: ["controller", "result"],
    buckets,
    registers,
  });
  return (name) => ({
    queue: {
      added: () => adds.inc({ name }),
      retried: () => retries.inc({ name }),
      taken: (seconds) => waited.observe({ name }, seconds),
      done: (seconds) => worked.observe({ name }, seconds),
    },
    trackQueue: (stats) => queues.set(name, stats),
    reconciled: (result, seconds) => results.observe({ controller: name, result }, seconds),
  });
}

function registerCacheGauges(registry: Registry, watched: readonly ResourceWatch[]): void {
  const label = "resource";
  registerGauge(registry, { name: "mos_cache_objects", help: "Objects in the cache.", label }, () =>
    watched.map(({ resource, size }) => [resource, size]),
  );
  registerGauge(
    registry,
    { name: "mos_cache_silence_seconds", help: "Since the API server's last word.", label },
    () => watched.map(({ resource, secondsSinceReceived }) => [resource, secondsSinceReceived]),
  );
}

interface GaugeOptions {
  readonly name: string;
  readonly help: string;
  readonly label: string;
}

/** A figure that is read, for each value of its one label, when it is asked for. */
function registerGauge(
  registry: Registry,
  figure: GaugeOptions,
  read: () => Iterable<readonly [string, number]>,
): void {
  const { name, help, label } = figure;
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
