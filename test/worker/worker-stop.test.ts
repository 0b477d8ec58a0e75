import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { newId } from "../../src/contract/id.ts";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { inheritedEnvironment } from "../support/inherited-environment.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { until } from "../support/until.ts";
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
  return until("a thread has started a process", async () => {
    const threads = await readdir(`/proc/${pid}/task`);
    const lists = threads.map((id) =>
      // A thread may have ended meanwhile.
      readFile(`/proc/${pid}/task/${id}/children`, "utf8").catch(() => ""),
    );
    const [first] = /\d+/.exec((await Promise.all(lists)).join(" ")) ?? [];
    return first === undefined ? undefined : Number(first);
  });
}

test(
  "the worker keeps the result where the process that runs a model is killed",
  { skip: process.platform !== "linux" },
  async (t) => {
    const { service, start } = await makeJob(t, orientation, {
      recipe: { evaluation: { samples: 1000 } },
    });
    const child = start();
    await service.waitFor(
      (event) =>
        event.type === "telemetry" &&
        event.telemetry.progress?.message?.startsWith("Running the original") === true,
    );
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
    assert.equal(telemetry.accuracy, undefined);
  },
);

test(
  "the worker completes without a latency where the process that times both models is killed",
  { skip: process.platform !== "linux" },
  async (t) => {
    const { service, start } = await makeJob(t, orientation, { recipe: longEvaluation });
    const child = start();
    await service.waitFor((event) => event.type === "log" && event.text.includes("Timing"));
    process.kill(await findChildProcess(child), "SIGKILL");
    assert.equal(await exitCode(child), workerExit.completed);
    const { telemetry } = summarizeEvents(service.events);
    assert(telemetry.accuracy);
    assert.equal(telemetry.latency, undefined);
    assert.match(
      telemetry.warnings?.find(({ code }) => code === "latency_not_timed")?.message ?? "",
      /do not fit into memory.* SIGKILL, most likely because the machine ran out of memory/,
    );
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
      (event) => event.type === "log" && event.text.includes("Candidates cannot be run"),
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

const workerPath = fileURLToPath(new URL("../../src/worker/main.ts", import.meta.url));
const ownProcesses = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"];

const lacksProcessNamespaces = (() => {
  try {
    execFileSync("unshare", [...ownProcesses, "true"], { stdio: "ignore" });
    return false;
  } catch {
    return "needs process namespaces";
  }
})();

/** Says when the first of the modules from npm is loaded, and then takes its time. */
const slowLoading = `
  import { writeSync } from "node:fs";
  import { registerHooks } from "node:module";
  let isFirst = true;
  registerHooks({
    load(url, context, next) {
      if (url.includes("/node_modules/") && isFirst) {
        isFirst = false;
        writeSync(1, "loading");
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
      }
      return next(url, context);
    },
  });`;

/** Of a pod whose service does not answer: its worker would wait for ever. */
const podEnvironment = {
  ...inheritedEnvironment(),
  MOS_SERVICE_URL: "http://127.0.0.1:9",
  MOS_JOB_ID: newId("job", new Date()),
  MOS_WORK_DIR: "/nonexistent",
  MOS_JOB_TOKEN_FILE: "/nonexistent",
};

test(
  "a worker which is the first process hears a SIGTERM while its modules are loaded",
  { skip: lacksProcessNamespaces, timeout: 240_000 },
  async (t) => {
    const preload = `--import=data:text/javascript,${encodeURIComponent(slowLoading)}`;
    const unshare = spawn("unshare", [...ownProcesses, process.execPath, preload, workerPath], {
      env: podEnvironment,
      stdio: ["ignore", "pipe", "inherit"],
    });
    t.after(() => unshare.kill("SIGKILL"));
    const [marker] = await once(unshare.stdout, "data");
    assert.equal(String(marker), "loading");
    // It would wait for its service for ever.
    process.kill(await findChildProcess(unshare), "SIGTERM");
    assert.equal(await exitCode(unshare), workerExit.cancelled);
  },
);

test("a worker which is not the first process stops at any time of its start", async (t) => {
  for (const delayMs of [0, 20, 50, 100, 200, 400, 800]) {
    const child = spawn(process.execPath, [workerPath], { env: podEnvironment, stdio: "ignore" });
    const exited = once(child, "exit");
    await delay(delayMs);
    const signalled = performance.now();
    child.kill("SIGTERM");
    const [code, signal] = await exited;
    const tookMs = Math.round(performance.now() - signalled);
    t.diagnostic(`SIGTERM after ${delayMs} ms: ${signal ?? code} within ${tookMs} ms`);
    assert.ok(signal === "SIGTERM" || code === workerExit.cancelled);
    // Less than it tries to deliver what it has not delivered.
    assert.ok(tookMs < 20_000);
  }
});
