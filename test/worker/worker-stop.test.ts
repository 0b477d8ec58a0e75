import assert from "node:assert/strict";
import { type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { workerExit } from "../../src/contract/jobs/worker.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { listenLocally } from "../support/listen-locally.ts";
import {
  makeJob,
  exitCode,
  storedNames,
  orientation,
  summarizeEvents,
  listArtifactHashes,
  waitForGroupExit,
} from "./worker-process.ts";

/** No format is chosen by its time where weights are restored at every run. */
const longEvaluation: PartialRecipe = {
  granularity: "channel",
  dequantize: "run",
  evaluation: { latencyBudgetSeconds: 3600 },
};

/** Ways to end a worker in the middle of its evaluation, with child processes at work. */
const endings: [name: string, end: (child: ChildProcess) => unknown][] = [
  ["SIGTERM", (child) => child.kill("SIGTERM")],
  ["the end of its standard input", (child) => child.stdin?.end()],
];
for (const [name, end] of endings) {
  test(`the worker stops on ${name}, leaving no process and no file but the result's`, async (t) => {
    const recipe = longEvaluation;
    const { service, storage, start } = await makeJob(t, orientation, { recipe });
    const child = start();
    await service.waitFor((event) => event.type === "log" && event.text.includes("Timing"));
    end(child);
    assert.equal(await exitCode(child), workerExit.cancelled);
    await waitForGroupExit(child);
    assert.deepEqual(await storedNames(storage), listArtifactHashes(service.events));
    assert.equal(service.events.at(-1)?.type === "result", true);
  });
}

test("the worker stops when the service says that the job was cancelled", async (t) => {
  const { service, start } = await makeJob(t, orientation, { recipe: longEvaluation });
  const child = start();
  await service.waitFor((event) => event.type === "log" && event.text.includes("Timing"));
  service.cancelled = true;
  assert.equal(await exitCode(child), workerExit.cancelled);
  await waitForGroupExit(child);
});

test("the worker stops in the middle of a download that hangs", async (t) => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-length": 100 });
    response.write("begin");
    server.emit("hanging");
  });
  const { start } = await makeJob(t, `${await listenLocally(t, server)}/net.onnx`);
  const child = start();
  await once(server, "hanging");
  child.kill("SIGTERM");
  assert.equal(await exitCode(child), workerExit.cancelled);
});

/** The process that one of the worker's threads has started. */
async function findChildProcess({ pid }: ChildProcess): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = threads.map(async (id) => readFile(`/proc/${pid}/task/${id}/children`, "utf8"));
  return Number((await Promise.all(lists)).join(" ").trim().split(" ")[0]);
}

test(
  "the worker keeps the result where the process that runs a model is killed",
  { skip: process.platform !== "linux" },
  async (t) => {
    const recipe = longEvaluation;
    const { service, start } = await makeJob(t, orientation, { recipe });
    const child = start();
    await service.waitFor((event) => event.type === "log" && event.text.includes("Timing"));
    process.kill(await findChildProcess(child), "SIGKILL");
    assert.equal(await exitCode(child), workerExit.failed);
    const result = service.events.at(-1);
    assert(result?.type === "result");
    assert.equal(result.error?.code, "evaluation_failed");
    const { artifacts, telemetry } = summarizeEvents(service.events);
    assert.deepEqual(
      artifacts.map(({ name }) => name),
      ["model.onnx", "graph.json", "report.json"],
    );
    assert(telemetry.accuracy);
  },
);

test(
  "the worker chooses formats without times where the process that runs candidates is killed",
  { skip: process.platform !== "linux" },
  async (t) => {
    const { service, start } = await makeJob(t, orientation, {
      recipe: { evaluation: longEvaluation.evaluation },
    });
    const child = start();
    await service.waitFor(
      (event) =>
        event.type === "telemetry" &&
        event.telemetry.progress?.message?.startsWith("Timed both models") === true,
    );
    process.kill(await findChildProcess(child), "SIGKILL");
    await service.waitFor(
      (event) => event.type === "log" && event.text.includes("Candidates are not timed"),
    );
    await service.waitFor((event) => event.type === "artifact");
    child.kill("SIGTERM");
    assert.equal(await exitCode(child), workerExit.cancelled);
  },
);

test("a worker that is killed leaves no half-written file where blobs are, and no process", async (t) => {
  const { service, storage, start } = await makeJob(t, orientation, { recipe: longEvaluation });
  const child = start();
  await service.waitFor((event) => event.type === "log" && event.text.includes("Timing"));
  child.kill("SIGKILL");
  await waitForGroupExit(child);
  await createDirectoryBlobStore(storage);
  const { artifacts } = summarizeEvents(service.events);
  assert.deepEqual(
    artifacts.map(({ name }) => name),
    ["model.onnx"],
  );
  assert.deepEqual(await storedNames(storage), listArtifactHashes(service.events));
});
