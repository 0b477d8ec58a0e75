import { Counter, Gauge, type Registry } from "prom-client";

/** Ended pods whose logs are still to be read, by uid. */
export class UnreadLogs {
  readonly #since = new Map<string, number>();

  get count(): number {
    return this.#since.size;
  }

  /** Since the first of them was found; 0 if there are none. */
  get lagSeconds(): number {
    const [oldest] = this.#since.values();
    return oldest === undefined ? 0 : (performance.now() - oldest) / 1000;
  }

  add(podUid: string): void {
    if (!this.#since.has(podUid)) this.#since.set(podUid, performance.now());
  }

  delete(podUid: string): void {
    this.#since.delete(podUid);
  }

  clear(): void {
    this.#since.clear();
  }
}

/** Why lines of a worker cannot be read any more. */
const lossReasons = ["pod_deleted", "log_gone", "node_silent"] as const;
export type LossReason = (typeof lossReasons)[number];

const gauges: readonly (readonly [
  name: string,
  help: string,
  read: (unread: UnreadLogs) => number,
])[] = [
  ["mos_unread_pod_logs", "Ended pods whose logs are still to be read.", ({ count }) => count],
  [
    "mos_pod_log_lag_seconds",
    "Since the pod ended whose log has been unread for longest; 0 where all are read.",
    ({ lagSeconds }) => lagSeconds,
  ],
];

/** @returns a function that counts a pod whose last lines are lost */
export function registerLogMetrics(
  registry: Registry,
  unread: UnreadLogs,
): (reason: LossReason) => void {
  for (const [name, help, read] of gauges) {
    const collect = () => gauge.set(read(unread));
    const gauge: Gauge = new Gauge({ name, help, registers: [registry], collect });
  }
  const lost = new Counter({
    registers: [registry],
    name: "mos_pod_logs_lost_total",
    help: "Pods whose last lines may be missing in their job's log.",
    labelNames: ["reason"],
  });
  // A rate is known only of a series that began before its first loss.
  for (const reason of lossReasons) lost.inc({ reason }, 0);
  return (reason) => lost.inc({ reason });
}
