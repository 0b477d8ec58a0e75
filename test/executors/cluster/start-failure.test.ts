import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { builtinTargets } from "../../../src/contract/jobs/target.ts";
import { createRuntimeMetrics } from "../../../src/controller-runtime/metrics.ts";
import { createClusterExecutor } from "../../../src/executors/cluster/cluster-executor.ts";
import { connectTestCluster } from "../../kubernetes/connect-test-cluster.ts";
import { openTestRecords } from "../../records/new-jobs.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../../support/cluster/shared-cluster.ts";
import { startRunningService } from "../../support/running-service.ts";
import { until } from "../../support/until.ts";

test("a recorder whose start fails starts again", { skip: clusterMissing }, async (t) => {
  const { client } = await connectTestCluster();
  const records = await openTestRecords();
  const messages: string[] = [];
  let reads = 0;
  const listUnfinishedJobs = async () => {
    if (++reads < 3) throw new Error("The database is busy");
    return records.cluster.listUnfinishedJobs();
  };
  const executor = createClusterExecutor({
    client,
    namespaces: { own: client.namespace, others: [] },
    findUpload: async () => undefined,
    records: { ...records, cluster: { ...records.cluster, listUnfinishedJobs } },
    targets: builtinTargets,
    resourceTtlSeconds: 60,
    workerServiceAccount: "worker",
    acceptsServiceAccountTokens: false,
    metrics: createRuntimeMetrics(),
    now: () => new Date(),
    log: (_level, message) => void messages.push(message),
  });
  t.after(() => executor.close());
  await until("the recorder runs", async () => executor.readinessProblem() === undefined);
  assert.equal(reads, 3);
  assert.equal(messages.length, 2);
  assert.equal(executor.livenessProblem?.(), undefined);
});

test(
  "a service without rights in its cluster says which it lacks, and answers all the same",
  { skip: clusterMissing },
  async (t) => {
    const { cluster, namespace } = await createTestNamespace();
    const token = (await cluster.kubectl(["create", "token", "default", "-n", namespace])).trim();
    const directory = await mkdtemp(join(tmpdir(), "kubeconfig-"));
    t.after(() => rm(directory, { recursive: true }));
    const kubeconfig = join(directory, "config.json");
    const admin = await readFile(cluster.kubeconfig, "utf8");
    await writeFile(kubeconfig, admin.replaceAll(cluster.adminToken, token));
    const environment = {
      MOS_EXECUTOR: "cluster",
      KUBECONFIG: kubeconfig,
      MOS_NAMESPACE: namespace,
    };
    const { baseUrl, client } = await startRunningService(t, { environment });
    const reason = await until("the reason is reported", async () => {
      const answer = await fetch(new URL("/readyz", baseUrl));
      const text = await answer.text();
      return answer.status === 503 && text.includes("Role") && text;
    });
    assert.match(reason, /verbs \["list", "watch"\]/);
    const model = { source: "https://models.example/detector.onnx" };
    const { id } = await client.call("startCompression", { body: { model, target: "cpu" } });
    assert.equal((await client.call("getJob", { params: { id } })).status, "Pending");
    const body = { models: [model], targets: ["cpu", "cpu-int8"] };
    const { jobs } = await client.call("submitBatch", { body });
    const ids = [id, ...jobs.map((job) => job.id)];
    const untilAll = (what: RegExp) =>
      until(`all jobs are ${what}`, async () => {
        const all = await Promise.all(ids.map((id) => client.call("getJob", { params: { id } })));
        return all.every((job) => what.test(`${job.statusReason}: ${job.statusMessage}`));
      });
    const grant = async (...verbs: readonly string[]) => {
      const name = verbs.join("-");
      const kinds = "compressionjobs.modeloptimization.dev,batches.modeloptimization.dev,pods";
      const rule = [`--verb=${verbs.join(",")}`, `--resource=${kinds}`, "-n", namespace];
      await cluster.kubectl(["create", "role", name, ...rule]);
      const subject = [`--role=${name}`, `--serviceaccount=${namespace}:default`, "-n", namespace];
      await cluster.kubectl(["create", "rolebinding", name, ...subject]);
    };
    await grant("list", "watch");
    await untilAll(/^not_submitted: The cluster does not take the job yet: .* cannot create /);
    await grant("create");
    await untilAll(/^queued: /);
  },
);
