import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Job } from "../../src/contract/jobs/job.ts";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import type { WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { fastClock } from "../support/preloaded-modules.ts";
import { realModel } from "../support/real-models.ts";
import { until } from "../support/until.ts";
import { parsePodMessage, type PodService, startPodService } from "./pod-service.ts";
import { listJobArtifacts, runSteps, waitForPodEnd } from "./pod-steps.ts";

const unevaluated: PartialRecipe = { evaluation: { level: "none" } };
/** A job that goes on until it is stopped, and chooses no format by its time before. */
const endless: PartialRecipe = {
  dequantize: "run",
  evaluation: { latencyBudgetSeconds: 3600 },
};

async function uploaded(service: PodService, file = realModel("ocr-orientation")) {
  const sha256 = await service.upload(file);
  return { source: `upload:sha256:${sha256}`, name: "net" };
}

function textsIn(events: readonly WorkerEvent[]): string[] {
  return events.flatMap((event) => (event.type === "log" ? [event.text] : []));
}

/** From then on a worker needs the service for nothing but its result. */
function hasModel(_: Job, lines: readonly string[]): boolean {
  return lines.some((line) => line.includes("SHA-256"));
}

test("a pod compresses a model of the service's store, whose output is all that it reports", async (t) => {
  const service = await startPodService(t);
  const id = await service.createJob(await uploaded(service));
  const pod = await service.startPod(id);
  const { code, events } = await waitForPodEnd(pod);
  assert.equal(code, workerExit.completed);
  const job = await service.find(id);
  assert.equal(job.status, "Completed");
  assert.deepEqual(await service.readLogTexts(id), textsIn(events));
  assert.deepEqual(await parsePodMessage(pod), {
    outcome: "Completed",
    lastSeq: events.length,
    delivered: true,
  });
  for (const { sha256, bytes } of job.artifacts) {
    assert.equal((await buffer(service.blobs.read(sha256))).length, bytes);
  }
  assert((job.telemetry.accuracy?.cosine ?? 0) > 0.9);
});

async function serveModel(t: TestContext): Promise<{ source: string; requests: () => number }> {
  let requests = 0;
  const server = createServer((_, response) => {
    requests++;
    createReadStream(realModel("ocr-orientation")).pipe(response);
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const address = server.address();
  assert(address !== null && typeof address === "object");
  return { source: `http://127.0.0.1:${address.port}/net.onnx`, requests: () => requests };
}

// What schemes give is compared in engine/shares; pods know none of them.
test("pods that share a job store the same files as one pod, and fetch the model once", async (t) => {
  const service = await startPodService(t);
  const { source, requests } = await serveModel(t);
  const whole = await service.createJob(
    { source, name: "net" },
    { ...unevaluated, parallelism: 3 },
  );
  await waitForPodEnd(await service.startPod(whole));
  const before = requests();
  const shared = await service.createJob(
    { source, name: "net" },
    { ...unevaluated, parallelism: 3 },
  );
  await runSteps(service, shared, 3);
  assert.equal(requests() - before, 1);
  const [one, many] = [
    await listJobArtifacts(service, whole),
    await listJobArtifacts(service, shared),
  ];
  assert.deepEqual(many[0], one[0]);
  const reports = await Promise.all(
    [one, many].map(async (artifacts) =>
      JSON.parse(String(await buffer(service.blobs.read(artifacts[1]?.[1] ?? "")))),
    ),
  );
  assert.deepEqual(reports[0].weights, reports[1].weights);
  const job = await service.find(shared);
  assert.deepEqual(
    job.transitions.map(({ status }) => status),
    ["Pending", "Sharding", "Optimizing", "Completed"],
  );
  assert.deepEqual(job.telemetry.size, (await service.find(whole)).telemetry.size);
  assert.deepEqual(Object.keys(job.telemetry.stageSeconds ?? {}).toSorted(), [
    "evaluate",
    "fetch",
    "optimize",
    "publish",
    "shard",
  ]);
});

test("pods share a model of a file:// source with the folder that all of them see", async (t) => {
  const service = await startPodService(t);
  const source = `file://${realModel("ocr-orientation")}`;
  const id = await service.createJob({ source, name: "net" }, { parallelism: 2 });
  await runSteps(service, id, 2);
  const job = await service.find(id);
  assert.equal(job.status, "Completed");
  assert((job.telemetry.accuracy?.cosine ?? 0) > 0.9);
});

test("a share is worked on again after its pod was killed, and not once it is finished", async (t) => {
  const service = await startPodService(t);
  const recipe: PartialRecipe = { ...unevaluated, parallelism: 2 };
  const [whole, shared] = [
    await service.createJob(await uploaded(service), recipe),
    await service.createJob(await uploaded(service), recipe),
  ];
  await waitForPodEnd(await service.startPod(whole));
  await waitForPodEnd(await service.startPod(shared, { step: "shard", index: 0 }));
  service.onRequest = (request) => request.method === "PUT";
  const lost = await service.startPod(shared, { step: "optimize", index: 1 });
  await service.until(shared, (_, lines) =>
    lines.some((line) => line.startsWith("[optimize 2/2]")),
  );
  lost.process.kill("SIGKILL");
  await lost.ended;
  service.onRequest = () => false;
  for (const index of [0, 1])
    await waitForPodEnd(await service.startPod(shared, { step: "optimize", index }));
  const again = await waitForPodEnd(await service.startPod(shared, { step: "optimize", index: 1 }));
  assert(textsIn(again.events).includes("Share 2 was finished by an earlier pod"));
  await waitForPodEnd(await service.startPod(shared, { step: "assemble", index: 0 }));
  assert.deepEqual(
    (await listJobArtifacts(service, shared))[0],
    (await listJobArtifacts(service, whole))[0],
  );
  const lines = await service.readLogTexts(shared);
  assert(lines.some((line) => /^Another pod takes over share 2: attempt \d begins$/.test(line)));
});

test("a pod goes on while the service is away for an hour, and then reports what it missed, each line once", async (t) => {
  const hourMs = 100;
  const service = await startPodService(t, { nodeOptions: fastClock(3_600_000 / hourMs) });
  const id = await service.createJob(await uploaded(service), {
    dequantize: "run",
    evaluation: { latencyBudgetSeconds: 2 },
  });
  const pod = await service.startPod(id);
  await service.until(id, hasModel);
  await service.stop();
  await delay(hourMs);
  await service.start();
  // It says so where it has something to report meanwhile.
  const outage = /^(The worker's requests have failed for \d+ s: .*\n)*$/;
  const { code, events } = await waitForPodEnd(pod, outage);
  assert.equal(code, workerExit.completed);
  assert.equal((await service.find(id)).status, "Completed");
  assert.deepEqual(await service.readLogTexts(id), textsIn(events));
});

test("a pod that starts before the service waits for it", async (t) => {
  const service = await startPodService(t, { listening: false });
  const id = await service.createJob(await uploaded(service), unevaluated);
  const pod = await service.startPod(id);
  await once(pod.process, "spawn");
  await service.start();
  assert.equal((await waitForPodEnd(pod)).code, workerExit.completed);
  assert.equal((await service.find(id)).status, "Completed");
});

test("a pod reads its token anew when it was replaced, and waits while the service does not know the new one", async (t) => {
  const service = await startPodService(t);
  const id = await service.createJob(await uploaded(service), unevaluated);
  const pod = await service.startPod(id);
  const old = `token-of-${pod.uid}`;
  const known = service.tokens.get(old);
  assert(known);
  let refused = 0;
  service.onRequest = ({ url, headers: { authorization } }) => {
    if (authorization === `Bearer ${old}` && url?.endsWith("/events") === true) {
      service.tokens.delete(old);
      void writeFile(pod.tokenFile, "the-next-token");
    }
    if (authorization === "Bearer the-next-token" && ++refused > 3)
      service.tokens.set("the-next-token", known);
    return false;
  };
  const { code, events } = await waitForPodEnd(pod);
  assert.equal(code, workerExit.completed);
  assert(refused > 3);
  assert.equal((await service.find(id)).status, "Completed");
  assert.deepEqual(await service.readLogTexts(id), textsIn(events));
});

test("a pod that is stopped says so, in its output, its exit code and its message", async (t) => {
  const service = await startPodService(t);
  const id = await service.createJob(await uploaded(service), endless);
  const pod = await service.startPod(id);
  await service.until(id, (_, lines) => lines.some((line) => line.includes("Timing")));
  await service.stop();
  pod.process.kill("SIGTERM");
  const { code, events } = await waitForPodEnd(pod);
  assert.equal(code, workerExit.cancelled);
  assert.equal(textsIn(events).at(-1), "Stopped: the worker received SIGTERM");
  const { outcome, lastSeq, delivered } = await parsePodMessage(pod);
  assert.deepEqual({ outcome, lastSeq }, { outcome: "Cancelled", lastSeq: events.length });
  assert.notEqual(delivered, true);
});

test("a pod that is stopped while the service is away delivers its last lines", async (t) => {
  const service = await startPodService(t);
  const id = await service.createJob(await uploaded(service), endless);
  const pod = await service.startPod(id);
  await service.until(id, (_, lines) => lines.some((line) => line.includes("Timing")));
  let refused = 0;
  service.onRequest = ({ url }, response) => {
    if (url?.endsWith("/events") !== true || refused === 3) return false;
    refused++;
    response.destroy();
    return true;
  };
  pod.process.kill("SIGTERM");
  const { events } = await waitForPodEnd(pod);
  assert.equal(refused, 3);
  assert.deepEqual(await service.readLogTexts(id), textsIn(events));
});

test("a pod of a job that was cancelled before it began ends as cancelled", async (t) => {
  const service = await startPodService(t);
  const id = await service.createJob(await uploaded(service));
  await service.records.jobs.cancel("default", id);
  const pod = await service.startPod(id);
  assert.equal((await waitForPodEnd(pod)).code, workerExit.cancelled);
  assert.deepEqual(await parsePodMessage(pod), { outcome: "Cancelled", lastSeq: 0 });
});

test("a pod of a bad model fails with the error in its message", async (t) => {
  const service = await startPodService(t);
  const file = path.join(service.folder, "text.onnx");
  await writeFile(file, "not a model");
  const id = await service.createJob(await uploaded(service, file));
  const pod = await service.startPod(id);
  const { code, events } = await waitForPodEnd(pod);
  assert.equal(code, workerExit.failed);
  const { outcome, error, lastSeq } = await parsePodMessage(pod);
  assert.deepEqual([outcome, error?.code, lastSeq], ["Failed", "model_invalid", events.length]);
  assert.deepEqual((await service.find(id)).error, error);
});

test("what a killed pod could not report is in its output, and completes the records", async (t) => {
  const service = await startPodService(t);
  const id = await service.createJob(await uploaded(service), endless);
  const pod = await service.startPod(id);
  let printed = "";
  pod.process.stdout?.on("data", (chunk) => (printed += String(chunk)));
  await until("the pod evaluates", () => printed.includes("[evaluate]"));
  await service.stop();
  const findNextSeq = async () =>
    (await service.records.attempts.findPodAttempt(id, pod.uid))?.nextSeq ?? 0;
  await until("it prints more", async () => printed.split("\n").length > 1 + (await findNextSeq()));
  pod.process.kill("SIGKILL");
  const { events } = await waitForPodEnd(pod);
  assert(events.length > (await findNextSeq()));
  await service.records.workers.recordFinalEvents(id, 1, events);
  assert.deepEqual(await service.readLogTexts(id), textsIn(events));
});
