import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { z } from "zod";
import { findFreePort } from "../support/find-free-port.ts";
import { chartFolder } from "./helm.ts";
import { until } from "../support/until.ts";

/** Of the series that the PodMonitor's scrapes have. */
const labels = { job: "model-optimization", namespace: "models" };

/** Times of the rules are shorter here: promtool checks them as they are. */
const shorterTimes: readonly (readonly [RegExp, string])[] = [
  [/for: \w+/g, "for: 1s"],
  [/\[2m\]/g, "[10s]"],
  [/\[10m\]/g, "[30s]"],
  [/> 1800/g, "> 3"],
  [/> 60/g, "> 3"],
];

const queryAnswer = z.object({
  status: z.literal("success"),
  data: z.object({ result: z.array(z.unknown()) }),
});
const alertsAnswer = z.object({
  data: z.object({
    alerts: z.array(
      z.object({ state: z.string(), labels: z.looseObject({ alertname: z.string() }) }),
    ),
  }),
});

export interface RunningPrometheus {
  /** Resolves when the query's answer has a value. */
  find(query: string): Promise<void>;
  /** Resolves when the alert fires. */
  firing(alert: string): Promise<void>;
  /** Resolves when the alert does not fire. */
  ended(alert: string): Promise<void>;
}

/** A real Prometheus that scrapes processes by their ports, with the chart's rules. */
export async function startPrometheus(
  t: Pick<TestContext, "after">,
  ports: Readonly<Record<string, number>>,
): Promise<RunningPrometheus> {
  const folder = await mkdtemp(join(tmpdir(), "prometheus-"));
  await writeFile(join(folder, "rules.yaml"), await readRules());
  await writeFile(join(folder, "prometheus.yaml"), JSON.stringify(configuration(ports)));
  const port = await findFreePort();
  const flags = [
    `--config.file=${join(folder, "prometheus.yaml")}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child = spawn("prometheus", flags, { stdio: "ignore" });
  t.after(async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
    await rm(folder, { recursive: true, maxRetries: 20 });
  });
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return answer.status === 400 ? Promise.reject(new Error(await answer.text())) : answer.json();
  };
  const isFiring = async (name: string) => {
    const { alerts } = alertsAnswer.parse(await ask("alerts")).data;
    return alerts.some((alert) => alert.state === "firing" && alert.labels.alertname === name);
  };
  return {
    find: (query) =>
      poll(`a value of ${query}`, async () => {
        const { data } = queryAnswer.parse(await ask(`query?query=${encode(query)}`));
        return data.result.length > 0;
      }),
    firing: (alert) => poll(alert, () => isFiring(alert)),
    ended: (alert) => poll(`the end of ${alert}`, async () => !(await isFiring(alert))),
  };
}

async function readRules(): Promise<string> {
  const rules = await readFile(join(chartFolder, "monitoring/rules.yaml"), "utf8");
  return shorterTimes.reduce(
    (text, [time, shorter]) => text.replaceAll(time, shorter),
    rules.replaceAll("$NAMESPACE", labels.namespace),
  );
}

function configuration(ports: Readonly<Record<string, number>>): object {
  return {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["rules.yaml"],
    scrape_configs: Object.entries(ports).map(([container, port]) => {
      const target = { ...labels, container, pod: `${container}-1` };
      const addresses = { targets: [`127.0.0.1:${port}`], labels: target };
      return { job_name: container, static_configs: [addresses] };
    }),
  };
}

/** A panel's query as Grafana sends it. */
function encode(query: string): string {
  return encodeURIComponent(
    query
      .replaceAll("$__rate_interval", "10s")
      .replaceAll("$__range", "5m")
      .replaceAll("$namespace", labels.namespace),
  );
}

/** Prometheus notifies nobody of what it has scraped. It refuses connections until it has started. */
async function poll(what: string, isDone: () => Promise<boolean>): Promise<void> {
  await until(`Prometheus shows ${what}`, () =>
    isDone().catch((error: unknown) => {
      if (error instanceof TypeError) return false;
      throw error;
    }),
  );
}
