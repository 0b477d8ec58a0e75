import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { startOperator } from "../operator/start-operator.ts";
import { clusterMissing, prometheusMissing } from "../support/cluster/cluster-missing.ts";
import { findFreePort } from "../support/cluster/find-free-port.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { realModel } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";
import { chartFolder } from "./helm.ts";

const skip = clusterMissing || prometheusMissing;
const namespace = "models";
/** Series of the pods that Prometheus finds by the PodMonitor have these labels. */
const job = "model-optimization";

type TestNamespace = Awaited<ReturnType<typeof createTestNamespace>>;

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
const dashboard = z.object({
  panels: z.array(
    z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })) }),
  ),
});

test(
  "the dashboard's panels have data, and alerts fire when service and operator end",
  {
    skip,
  },
  async (t) => {
    const [servicePort, operatorPort] = [
      await findFreePort("127.0.0.1"),
      await findFreePort("127.0.0.1"),
    ];
    const service = await startRunningService(t, {
      environment: { MOS_HEALTH_PORT: String(servicePort) },
    });
    const shared = await createTestNamespace();
    const operator = await startOperator({
      kubeconfig: shared.cluster.kubeconfig,
      namespace: shared.namespace,
      environment: { MOS_HEALTH_PORT: String(operatorPort) },
    });
    t.after(() => operator.end("SIGKILL"));
    await createCompressionJob(shared);
    const prometheus = await startPrometheus(t, { service: servicePort, operator: operatorPort });

    await prometheus.find(`up{container="service"} == 1`);
    const { source } = await service.client.uploadModel(realModel("ocr-orientation"));
    const recipe = { evaluation: { level: "none" } } as const;
    const { id } = await service.client.call("startCompression", {
      body: { model: { source }, target: "cpu", recipe },
    });
    for await (const line of service.client.followLogs(id)) assert.ok(line.text);
    const text = await readFile(join(chartFolder, "monitoring/dashboard.json"), "utf8");
    for (const { title, targets } of dashboard.parse(JSON.parse(text)).panels) {
      for (const { expr } of targets) {
        await t.test(`the panel "${title}" has data: ${expr}`, () => prometheus.find(expr));
      }
    }
    service.process.kill("SIGKILL");
    await prometheus.alert("ServiceUnreachable");
    await operator.end("SIGKILL");
    await prometheus.alert("OperatorWithoutLeader");
  },
);

async function createCompressionJob({ cluster, namespace: of }: TestNamespace): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "monitored-"));
  const resource = {
    apiVersion: "modeloptimization.dev/v1",
    kind: "CompressionJob",
    metadata: { name: "monitored", namespace: of },
    spec: { model: { source: "https://example.com/model.onnx" }, target: "cpu" },
  };
  await writeFile(join(folder, "job.json"), JSON.stringify(resource));
  await cluster.kubectl(["create", "-f", join(folder, "job.json")]);
  await rm(folder, { recursive: true });
}

interface RunningPrometheus {
  /** Resolves when the query's answer has a value. */
  find(query: string): Promise<void>;
  /** Resolves when the alert fires. */
  alert(name: string): Promise<void>;
}

/** A real Prometheus that scrapes the processes, and whose alerts wait for a second. */
async function startPrometheus(
  t: TestContext,
  ports: Readonly<Record<string, number>>,
): Promise<RunningPrometheus> {
  const folder = await mkdtemp(join(tmpdir(), "prometheus-"));
  const rules = await readFile(join(chartFolder, "monitoring/rules.yaml"), "utf8");
  const ownRules = rules.replaceAll("$NAMESPACE", namespace).replaceAll(/for: \w+/g, "for: 1s");
  await writeFile(join(folder, "rules.yaml"), ownRules);
  const config = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["rules.yaml"],
    scrape_configs: Object.entries(ports).map(([container, port]) => ({
      job_name: container,
      static_configs: [
        {
          targets: [`127.0.0.1:${port}`],
          labels: { job, namespace, container, pod: `${container}-1` },
        },
      ],
    })),
  };
  await writeFile(join(folder, "prometheus.yaml"), JSON.stringify(config));
  const port = await findFreePort("127.0.0.1");
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(folder, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: "ignore" },
  );
  t.after(async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
    await rm(folder, { recursive: true, maxRetries: 20 });
  });
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return answer.status === 400 ? Promise.reject(new Error(await answer.text())) : answer.json();
  };
  return {
    find: (query) =>
      poll(async () => {
        const { data } = queryAnswer.parse(await ask(`query?query=${encode(query)}`));
        return data.result.length > 0;
      }),
    alert: (name) =>
      poll(async () => {
        const { alerts } = alertsAnswer.parse(await ask("alerts")).data;
        return alerts.some(({ state, labels }) => state === "firing" && labels.alertname === name);
      }),
  };
}

/** A panel's query as Grafana sends it. */
function encode(query: string): string {
  return encodeURIComponent(
    query
      .replaceAll("$__rate_interval", "10s")
      .replaceAll("$__range", "5m")
      .replaceAll("$namespace", namespace),
  );
}

/** Prometheus announces nothing that it has scraped. It refuses connections until it has started. */
async function poll(isDone: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const done = await isDone().catch((error: unknown) => {
      if (error instanceof TypeError) return false;
      throw error;
    });
    if (done) return;
    if (performance.now() > deadline) throw new Error("Nothing came within a minute");
    await delay(200);
  }
}
