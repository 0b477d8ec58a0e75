import { Counter, Histogram, type Registry } from "prom-client";
import { registerGauge } from "./register-gauge.ts";
import { secondsBuckets } from "./seconds-buckets.ts";
import type { ControllerObserver } from "./start-controller.ts";
import type { QueueObserver, QueueStats } from "./work-queue.ts";

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
export function registerControllerMetrics(
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
