import assert from "node:assert/strict";
import { copyFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import test, { after } from "node:test";
import type { Client } from "../../../src/client/create-client.ts";
import { apiGroup } from "../../../src/contract/custom-resources/api-group.ts";
import { batches, compressionJobs } from "../../../src/resources/custom-resources.ts";
import { workerJobName } from "../../../src/resources/job-identity.ts";
import { isNotFound } from "../../../src/kubernetes/kubernetes-error.ts";
import { resources } from "../../../src/kubernetes/resources.ts";
import { clusterMissing } from "../../support/cluster/cluster-missing.ts";
import { type ControlPlane, startControlPlane } from "../../support/cluster/control-plane.ts";
import { realModel } from "../../support/real-models.ts";
import { startCollector } from "../../tracing/collector.ts";
import { type ClusterService } from "./cluster-service.ts";
import { testDrain } from "./drain.ts";
import { spawnStandby, startInstallation } from "./installation.ts";
import { testOutage } from "./outage.ts";
import { isOutageReport, printedLines } from "./printed-lines.ts";
import { until } from "../../support/until.ts";

const options = { skip: clusterMissing };

let started: Promise<ControlPlane> | undefined;
after(async () => (await started)?.stop());
function controlPlane(): Promise<ControlPlane> {
  started ??= startControlPlane({ loadRun: true });
  return started;
}

async function startJob({ client }: ClusterService, samples: number): Promise<string> {
  const { source } = await client.uploadModel(realModel("ocr-orientation"));
  // Where weights are restored at every run, no format is chosen by its time before.
  const evaluation = { samples, latencyBudgetSeconds: 0.1 };
  const recipe = { dequantize: "run", evaluation } as const;
  return (
    await client.call("startCompression", { body: { model: { source }, target: "cpu", recipe } })
  ).id;
}

/** Follows the log up to a line that contains the text, or to its end; gives its lines. */
async function follow(client: Client, id: string, text?: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of client.followLogs(id)) {
    lines.push(line.text);
    if (text !== undefined && line.text.includes(text)) break;
  }
  return lines;
}

async function findPodName({ api }: ClusterService, jobId: string): Promise<string> {
  const labelSelector = `modeloptimization.dev/job-id=${jobId}`;
  for await (const { items } of api.list(resources.pods, { labelSelector })) {
    const [pod] = items;
    if (pod !== undefined) return pod.metadata.name;
  }
  throw new Error(`Job "${jobId}" has no pod`);
}

function untilRecorded({ api }: ClusterService, id: string) {
  return until("the job is recorded", async () => {
    const found = await api.get(compressionJobs, id);
    const isEnded = found.status?.finishedAt !== undefined;
    return isEnded && found.status?.report?.recorded === true && found;
  });
}

function countApiWrites(metrics: string): number {
  const ofJobs = /^apiserver_request_total\{.*resource="(compressionjobs|jobs)".*\}/;
  return metrics
    .split("\n")
    .filter(
      (line) =>
        ofJobs.test(line) &&
        /verb="(POST|PUT|PATCH|APPLY|DELETE)"/.test(line) &&
        /code="2/.test(line),
    )
    .filter((line) => !(line.includes('resource="jobs"') && !line.includes('verb="POST"')))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

test("an installation that nothing happens to", options, async (t) => {
  const { kubectl } = await controlPlane();
  const collector = await startCollector(t);
  const settings = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
  };
  const { service, node } = await startInstallation(t, await controlPlane(), { settings });
  const { client, api } = service;

  await t.test(
    "a job over REST is worked on by a pod, in at most seven writes of our own",
    async () => {
      const before = countApiWrites(await kubectl(["get", "--raw", "/metrics"]));
      const id = await startJob(service, 5);
      const lines = await follow(client, id);
      const job = await client.call("getJob", { params: { id } });
      assert.equal(job.status, "Completed", job.error?.message);
      const { status } = await untilRecorded(service, id);
      assert.equal(status?.status, "Completed");
      assert.equal(status.report?.artifacts?.length, job.artifacts.length);
      assert.deepEqual(lines, printedLines(node.podOutput(await findPodName(service, id))));
      const jobSpan = await collector.until(({ attributes }) => attributes["mos.job.id"] === id);
      const { traceId } = await collector.until(({ name }) => name === "POST /v1/compress");
      assert.equal(jobSpan.traceId, traceId);
      await collector.until((span) => span.name === "evaluate" && span.traceId === traceId);
      await until("the finalizer is gone", async () => {
        return ((await api.get(compressionJobs, id)).metadata.finalizers ?? []).length === 0;
      });
      const writes = countApiWrites(await kubectl(["get", "--raw", "/metrics"])) - before;
      const [sharding = 0, optimizing = 0] = job.transitions
        .filter(({ status: entered }) => entered === "Sharding" || entered === "Optimizing")
        .map(({ at }) => Date.parse(at));
      // Statuses that are entered within a second are reported, and taken over, together.
      const apart = optimizing - sharding > 500 ? 2 : 0;
      assert.ok(writes <= 7 + apart, `${writes} writes`);

      await api.delete(compressionJobs, id, { propagationPolicy: "Background" });
      await until("the pod is gone", async () =>
        findPodName(service, id).then(
          () => false,
          () => true,
        ),
      );
      assert.deepEqual(await follow(client, id), lines);
      assert.equal((await client.call("getJob", { params: { id } })).status, "Completed");
    },
  );

  await t.test("three pods share a job, and give what one pod gives", async () => {
    const { source } = await client.uploadModel(realModel("ocr-orientation"));
    const results = await Promise.all(
      [1, 3].map(async (parallelism) => {
        const recipe = { parallelism, evaluation: { latencyBudgetSeconds: 0, samples: 2 } };
        const { id } = await client.call("startCompression", {
          body: { model: { source }, target: "cpu", recipe },
        });
        await follow(client, id);
        const job = await client.call("getJob", { params: { id } });
        assert.equal(job.status, "Completed", job.error?.message);
        await untilRecorded(service, id);
        return job;
      }),
    );
    const [models, assembled] = results.map(({ artifacts }) =>
      artifacts.filter(({ kind }) => kind === "model"),
    );
    assert.deepEqual(models, assembled);
    const { id = "", telemetry } = results[1] ?? {};
    const { forecast, usage } = telemetry ?? {};
    assert.ok(forecast && usage);
    const { spec } = await api.get(resources.jobs, workerJobName(id, "assemble"));
    const requests = spec?.template.spec?.containers[0]?.resources?.requests;
    assert.equal(requests?.["memory"], `${Math.ceil(forecast.peakMemoryBytes / 2 ** 20)}Mi`);
  });

  await t.test("a batch over REST is worked on, one job at a time where it says so", async () => {
    const { source } = await client.uploadModel(realModel("ocr-orientation"));
    const recipe = { evaluation: { latencyBudgetSeconds: 0, samples: 2 } };
    const body = { models: [{ source }], targets: ["cpu", "cpu-int8"], recipe, parallelism: 1 };
    const { id, jobs } = await client.call("submitBatch", { body });
    for (const job of jobs) await follow(client, job.id);
    const batch = await client.call("getBatch", { params: { id } });
    assert.equal(batch.status, "Completed");
    await until(
      "the Batch says so, too",
      async () => (await api.get(batches, id)).status?.status === "Completed",
    );
  });

  await t.test("a job of a batch is cancelled before its turn comes", async () => {
    const { source } = await client.uploadModel(realModel("ocr-orientation"));
    const evaluation = { latencyBudgetSeconds: 3600, samples: 1024 };
    const recipe = { dequantize: "run", evaluation } as const;
    const body = { models: [{ source }], targets: ["cpu", "cpu-int8"], recipe, parallelism: 1 };
    const { id, jobs } = await client.call("submitBatch", { body });
    const [first, second] = jobs.map((job) => job.id);
    assert.ok(first !== undefined && second !== undefined);
    await follow(client, first, "[evaluate]");
    await client.call("cancelJob", { params: { id: second } });
    await follow(client, second);
    assert.equal((await client.call("getJob", { params: { id: second } })).status, "Cancelled");
    assert.equal((await client.call("getJob", { params: { id: first } })).status, "Optimizing");
    await client.call("cancelBatch", { params: { id } });
    await follow(client, first);
    assert.equal((await client.call("getBatch", { params: { id } })).status, "Cancelled");
  });

  await t.test("a cancelled job has no process any more when it is Cancelled", async () => {
    const id = await startJob(service, 1000);
    await follow(client, id, "[evaluate]");
    const pod = await findPodName(service, id);
    await client.call("cancelJob", { params: { id } });
    await follow(client, id);
    assert.equal((await client.call("getJob", { params: { id } })).status, "Cancelled");
    assert.equal(node.isRunning(pod), false);
    await untilRecorded(service, id);
  });

  await t.test("a resource that is deleted with kubectl stops its work and then goes", async () => {
    const id = await startJob(service, 1000);
    await follow(client, id, "[evaluate]");
    const pod = await findPodName(service, id);
    await api.delete(compressionJobs, id, { propagationPolicy: "Background" });
    await follow(client, id);
    assert.equal((await client.call("getJob", { params: { id } })).status, "Cancelled");
    assert.equal(node.isRunning(pod), false);
    await until("the resource is gone", async () =>
      api.get(compressionJobs, id).then(() => false, isNotFound),
    );
  });
});

test("a worker goes on over a service whose database is older than the job", options, async (t) => {
  const { service: first, node } = await startInstallation(t, await controlPlane());
  await first.stop("SIGTERM");
  const database = join(first.directory, "service.sqlite");
  await copyFile(database, `${database}.backup`);
  const second = await first.again();
  const id = await startJob(second, 150);
  await follow(second.client, id, "[evaluate]");
  // The upload is younger than the database, too: the resource says that the worker has it.
  await until("the resource says that work has begun", async () => {
    const { status } = await second.api.get(compressionJobs, id);
    return status?.report?.startedAt !== undefined;
  });
  await second.stop("SIGKILL");
  await Promise.all(["-wal", "-shm"].map((end) => rm(`${database}${end}`, { force: true })));
  await rename(`${database}.backup`, database);
  const third = await second.again();
  const isKnown = () =>
    third.client.call("getJob", { params: { id } }).then(
      () => true,
      () => false,
    );
  await until("the job is known again", isKnown);
  const lines = await follow(third.client, id);
  const job = await third.client.call("getJob", { params: { id } });
  assert.equal(job.status, "Completed", job.error?.message);
  assert.deepEqual(lines, printedLines(node.podOutput(await findPodName(third, id))));
});

test(
  "lines of a worker that was killed while the service was away are waited for",
  options,
  async (t) => {
    const { service, node } = await startInstallation(t, await controlPlane());
    const id = await startJob(service, 150);
    await follow(service.client, id, "[evaluate]");
    const pod = await findPodName(service, id);
    await service.stop("SIGKILL");
    node.isOutOfReach = true;
    await until("the worker goes on", async () =>
      printedLines(node.podOutput(pod)).some((line) => line.startsWith("[evaluate] Timing")),
    );
    node.killForMemory(pod);
    const isFailed = async () =>
      (await service.api.get(compressionJobs, id)).status?.status === "Failed";
    await until("the operator reports it", isFailed);
    const next = await service.again();
    await until("the log was asked for", async () => node.refusedReads > 0);
    assert.equal((await next.client.call("getJob", { params: { id } })).finishedAt, null);
    node.isOutOfReach = false;
    const lines = (await follow(next.client, id)).filter((line) => !isOutageReport(line));
    assert.deepEqual(lines, printedLines(node.podOutput(pod)));
    const job = await next.client.call("getJob", { params: { id } });
    assert.equal(job.error?.code, "out_of_memory");
    await untilRecorded(next, id);
  },
);

test("without the API server the service reads, records and answers", options, async (t) => {
  const plane = await controlPlane();
  const { service, node } = await startInstallation(t, plane);
  const { client } = service;
  await spawnStandby(t, service).logged("waiting for the leadership");
  const id = await startJob(service, 100);
  await follow(client, id, "[optimize]");
  await plane.stopApiServer();
  await follow(client, id, "[evaluate]");
  const waiting = await startJob(service, 5);
  assert.equal((await client.call("getJob", { params: { id: waiting } })).status, "Pending");
  const lines = await follow(client, id);
  assert.equal((await client.call("getJob", { params: { id } })).status, "Completed");
  await plane.startApiServer();
  await untilRecorded(service, id);
  assert.deepEqual(lines, printedLines(node.podOutput(await findPodName(service, id))));
  await follow(client, waiting);
  assert.equal((await client.call("getJob", { params: { id: waiting } })).status, "Completed");
});

test("an hour without operator and service fails no job and duplicates none", options, async (t) =>
  testOutage(t, await controlPlane()),
);

test("a drain of node and service with forty jobs loses no line in silence", options, async (t) =>
  testDrain(t, await controlPlane()),
);

test("definitions that are deleted in mid-job go, with its processes", options, async (t) => {
  // Its own: jobs that other tests leave behind would keep the definitions.
  const plane = await startControlPlane();
  const { service, node } = await startInstallation(t, plane);
  t.after(() => plane.stop());
  const { client } = service;
  const id = await startJob(service, 1000);
  await follow(client, id, "[evaluate]");
  const pod = await findPodName(service, id);
  const definitions = [compressionJobs, batches].map(({ plural }) => `${plural}.${apiGroup}`);
  await plane.kubectl(["delete", "crd", ...definitions, "--timeout=240s"]);
  assert.ok(!node.isRunning(pod));
  assert.equal((await client.call("getJob", { params: { id } })).status, "Cancelled");
  assert.match((await follow(client, id)).join("\n"), /\[evaluate\]/);
});
