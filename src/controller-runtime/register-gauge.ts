import { Gauge, type Registry } from "prom-client";

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
