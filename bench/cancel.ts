import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { resourceLabels } from "../src/contract/custom-resources/resource-labels.ts";
import { connectCluster } from "../src/kubernetes/connect-cluster.ts";
import { resources } from "../src/kubernetes/resources.ts";
import { install, namespace } from "../test/e2e/installation.ts";
import { workerProcesses } from "../test/e2e/processes.ts";
import { startCluster } from "../test/support/cluster/start-cluster.ts";
import { realModel } from "../test/support/real-models.ts";
import { until } from "../test/support/until.ts";
import { type BenchRow, limitRow, reportBench } from "./result.ts";

/**
 * Jobs on a real node that are cancelled a step later each, from the creation of their pod and from
 * the start of its process: how long until the job is Cancelled and nothing of it runs. Arguments:
 * seconds of a pod that are stepped through, seconds of a step.
 */
const [, seconds = "3", step = "0.1"] = process.argv.slice(2);
const steps = Math.round(Number(seconds) / Number(step));
const limitSeconds = 3;
const pollMs = 20;
/** More than a minute of work. */
const evaluation = { samples: 1024, latencyBudgetSeconds: 3600 };
const model = realModel("page-orientation");

await using cluster = await startCluster({ images: ["service", "worker"] });
const { client } = await install(cluster, { mountedModels: [model] });
const { kubeconfig } = cluster;
const api = await connectCluster({ kubeconfig }, { namespace });

const begins: readonly [what: string, hasBegun: (id: string) => Promise<boolean>][] = [
  ["its pod was created", hasPod],
  ["its process began", async (id) => (await workerProcesses(id)).length > 0],
];
const rows: BenchRow[] = [];
for (const [what, hasBegun] of begins) {
  for (let i = 0; i <= steps; i++) {
    const after = i * Number(step);
    const took = await cancelAfter(hasBegun, after);
    rows.push(limitRow(`cancelled ${after.toFixed(1)} s after ${what}`, "s", took, limitSeconds));
  }
}
await reportBench("cancel", rows);

async function hasPod(id: string): Promise<boolean> {
  const labelSelector = `${resourceLabels.jobId}=${id}`;
  for await (const { items } of api.list(resources.pods, { labelSelector })) {
    if (items.length > 0) return true;
  }
  return false;
}

/** Seconds from the request until the job is Cancelled, and no process of it is left. */
async function cancelAfter(
  hasBegun: (id: string) => Promise<boolean>,
  after: number,
): Promise<number> {
  const source = `file:///models/${basename(model)}`;
  const body = { model: { source }, target: "cpu", recipe: { evaluation } };
  const { id } = await client.call("startCompression", { body });
  const params = { id };
  while (!(await hasBegun(id))) await delay(pollMs);
  await delay(after * 1000);
  const begin = performance.now();
  await client.call("cancelJob", { params });
  await until("the job is cancelled", async () => {
    const { status } = await client.call("getJob", { params });
    return status === "Cancelled";
  });
  const took = (performance.now() - begin) / 1000;
  const left = await workerProcesses(id);
  if (left.length > 0) throw new Error(`Job "${id}" is Cancelled and has ${left.length} processes`);
  return took;
}
