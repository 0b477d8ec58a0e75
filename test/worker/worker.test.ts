import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { json } from "node:stream/consumers";
import { fileURLToPath, pathToFileURL } from "node:url";
import { z } from "zod";
import type { PartialRecipe } from "../../src/contract/recipe.ts";
import { resolveRecipe } from "../../src/contract/resolve-recipe.ts";
import type { JobKind } from "../../src/contract/status.ts";
import { builtinTargets } from "../../src/contract/target.ts";
import {
  type Assignment,
  type TelemetryUpdate,
  type WorkerEvent,
  workerExit,
} from "../../src/contract/worker.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { TensorProto_DataType } from "../../src/engine/onnx/onnx_pb.js";
import { writeFloatsNpz } from "../support/npz.ts";
import { realModel } from "../support/real-models.ts";
import { mountSmallDisk } from "../support/mount-small-disk.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";
import { modelOfOpset, modelWithExternalData } from "./bad-models.ts";
import { standInService } from "./stand-in-service.ts";

const workerPath = fileURLToPath(new URL("../../src/worker/main.ts", import.meta.url));
const quickEvaluation = { samples: 1, latencyBudgetSeconds: 0.1 };

interface Setting extends Partial<Omit<Assignment, "recipe" | "model" | "limits">> {
  readonly recipe?: PartialRecipe;
  readonly sha256?: string;
  /** Folder of the blobs. */
  readonly storage?: string;
  readonly limits?: Partial<Assignment["limits"]>;
}

/** A service stand-in with one job, and a way to start its worker. */
async function makeJob(t: TestContext, source: string, setting: Setting = {}) {
  const { recipe = {}, sha256, limits, ...rest } = setting;
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "worker-")));
  t.after(async () => rm(folder, { recursive: true }));
  const [target] = builtinTargets;
  assert(target);
  const assignment: Assignment = {
    id: "job-00000000000000000000000000",
    kind: "compress",
    model: { source, name: "net", ...(sha256 && { sha256 }) },
    target,
    recipe: resolveRecipe(target.recipe, { evaluation: quickEvaluation }, recipe),
    dryRun: false,
    attempt: 1,
    part: null,
    baseline: null,
    ...rest,
    limits: { maxModelBytes: 1e9, allowedRoots: ["/"], allowPrivateAddresses: true, ...limits },
  };
  const service = await standInService(t, assignment);
  const { storage = path.join(folder, "store") } = setting;
  const work = path.join(folder, "work");
  await mkdir(work);
  const start = () => {
    const child = spawn(process.execPath, [workerPath], {
      env: {
        TMPDIR: work,
        MOS_SERVICE_URL: service.url,
        MOS_JOB_ID: assignment.id,
        MOS_JOB_TOKEN: "secret",
        MOS_STORAGE_DIR: storage,
        MOS_WORK_DIR: work,
      },
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
    });
    child.stdout.resume();
    t.after(() => endGroup(child));
    return child;
  };
  return { service, storage, folder, start };
}

function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined && isGroupAlive(pid)) process.kill(-pid, "SIGKILL");
}

function isGroupAlive(pid: number): boolean {
  try {
    return process.kill(-pid, 0);
  } catch {
    return false;
  }
}

async function exitCode(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.exitCode;
}

async function storedNames(storage: string): Promise<string[]> {
  const entries = await readdir(storage, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

function sha256Of(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

const orientation = pathToFileURL(realModel("ocr-orientation")).href;

test("the worker compresses a real model, and tells its stages, figures and artifacts", async (t) => {
  const { service, storage, start } = await makeJob(t, orientation);
  assert.equal(await exitCode(start()), workerExit.completed);
  const { events } = service;
  const statuses = events.flatMap((event) => (event.type === "status" ? [event.status] : []));
  assert.deepEqual(statuses, ["Sharding", "Optimizing"]);
  const telemetry = Object.assign(
    {},
    ...events.map((event) => (event.type === "telemetry" ? event.telemetry : {})),
  );
  assert(telemetry.size.ratio < 0.5, `ratio ${telemetry.size.ratio}`);
  assert(telemetry.accuracy.cosine > 0.9, `cosine ${telemetry.accuracy.cosine}`);
  assert(telemetry.latency.result.p50Ms > 0);
  assert(telemetry.memory.workerPeakBytes > 1e7);
  assert.deepEqual(Object.keys(telemetry.stageSeconds), [
    "fetch",
    "shard",
    "optimize",
    "evaluate",
    "publish",
  ]);
  const artifacts = events.flatMap((event) => (event.type === "artifact" ? [event.artifact] : []));
  assert.deepEqual(
    artifacts.map(({ name, kind }) => [name, kind]),
    [
      ["model.onnx", "model"],
      ["report.json", "report"],
    ],
  );
  assert.deepEqual(
    (await storedNames(storage)).sort(),
    artifacts.map((artifact) => artifact.sha256).sort(),
  );
  assert.deepEqual(events.at(-1), { ...events.at(-1), type: "result", outcome: "Completed" });
  assert.deepEqual(
    events.map(({ seq }) => seq),
    Array.from(events, (_, i) => i + 1),
  );
});

const plannedRecipes: [kind: JobKind, recipe: PartialRecipe][] = [
  ["compress", { scheme: "int8-weight", granularity: "channel" }],
  ["quantize", { scheme: "fp16" }],
];
for (const [kind, recipe] of plannedRecipes) {
  test(`the worker's dry run of ${kind} with ${recipe.scheme} predicts the result's exact size, and writes no model`, async (t) => {
    const run = async (setting: Setting) => {
      const { service, storage, start } = await makeJob(t, orientation, { kind, ...setting });
      assert.equal(await exitCode(start()), workerExit.completed);
      return {
        ...summarizeEvents(service.events),
        report: await storedReport(service.events, storage),
      };
    };
    const data = "upload:sha256:" + "0".repeat(64);
    const dry = await run({ dryRun: true, recipe: { ...recipe, evaluation: { data } } });
    const real = await run({ recipe: { ...recipe, evaluation: { level: "none" } } });

    const { size, weights } = dry.telemetry;
    assert.deepEqual(size, { ...real.telemetry.size, predicted: true });
    assert.equal(size.resultBytes, real.artifacts.find(({ name }) => name === "model.onnx")?.bytes);
    assert.deepEqual(weights, real.telemetry.weights);
    assert.equal(dry.telemetry.accuracy, undefined);
    assert.deepEqual(
      dry.artifacts.map(({ name }) => name),
      ["report.json"],
    );
    assert.deepEqual(
      dry.report.weights,
      real.report.weights.map((weight) => ({ ...weight, error: null })),
    );
    assert.deepEqual(dry.statuses, real.statuses);
  });
}

/** What events said in the end. */
function summarizeEvents(events: readonly WorkerEvent[]) {
  const telemetry: TelemetryUpdate = {};
  for (const event of events)
    if (event.type === "telemetry") Object.assign(telemetry, event.telemetry);
  return {
    telemetry,
    artifacts: events.flatMap((event) => (event.type === "artifact" ? [event.artifact] : [])),
    statuses: events.flatMap((event) => (event.type === "status" ? [event.status] : [])),
  };
}

function listArtifactHashes(events: readonly WorkerEvent[]): string[] {
  return summarizeEvents(events).artifacts.map(({ sha256 }) => sha256);
}

const weightsReport = z.looseObject({
  weights: z.array(z.looseObject({ form: z.string().nullable() })),
  error: z.looseObject({ code: z.string() }).optional(),
});

async function storedReport(events: readonly WorkerEvent[], storage: string) {
  const report = summarizeEvents(events).artifacts.find(({ kind }) => kind === "report");
  const blobs = await createDirectoryBlobStore(storage);
  return weightsReport.parse(await json(blobs.read(report?.sha256 ?? "")));
}

test("the worker cuts the result into the stages that the recipe asks for", async (t) => {
  const recipe: PartialRecipe = { sharding: { stages: 2 }, evaluation: { level: "none" } };
  const { service, start } = await makeJob(t, orientation, { recipe });
  assert.equal(await exitCode(start()), workerExit.completed);
  const artifacts = service.events.flatMap((event) =>
    event.type === "artifact" ? [event.artifact] : [],
  );
  assert.deepEqual(
    artifacts.map(({ name, kind }) => [name, kind]),
    [
      ["model.onnx", "model"],
      ["stage-01.onnx", "stage"],
      ["stage-02.onnx", "stage"],
      ["pipeline.json", "manifest"],
      ["report.json", "report"],
    ],
  );
});

test("the worker quantizes an upload without sharding", async (t) => {
  const recipe: PartialRecipe = { evaluation: { level: "weights" } };
  const setting: Setting = { kind: "quantize", attempt: 2, recipe };
  const model = await readFile(realModel("ocr-orientation"));
  const { service, storage, start } = await makeJob(t, `upload:sha256:${sha256Of(model)}`, setting);
  const store = await createDirectoryBlobStore(storage);
  await store.write(new Blob([model]).stream());
  assert.equal(await exitCode(start()), workerExit.completed);
  const { events } = service;
  assert.deepEqual(
    events.flatMap((event) => (event.type === "status" ? [event.status] : [])),
    ["Optimizing"],
  );
  const accuracy = events
    .flatMap((event) => (event.type === "telemetry" ? (event.telemetry.accuracy ?? []) : []))
    .at(-1);
  assert.equal(accuracy?.level, "weights");
});

const badModels: [
  name: string,
  code: string,
  make: (model: Buffer) => Buffer,
  setting?: Setting,
][] = [
  [
    "a file that is not a protobuf",
    "model_invalid",
    () => Buffer.from("not a model at all, just text"),
  ],
  ["an empty file", "model_invalid", () => Buffer.alloc(0)],
  ["a truncated file", "model_truncated", (model) => model.subarray(0, model.length / 2)],
  ["an unknown opset", "model_opset_unsupported", () => modelOfOpset(99)],
  [
    "external data outside its folder",
    "external_data_refused",
    () => modelWithExternalData("../secret.bin"),
  ],
  ["missing external data", "external_data_missing", () => modelWithExternalData("weights.bin")],
  ["short external data", "external_data_short", () => modelWithExternalData("short.bin")],
  ["another SHA-256", "model_checksum_mismatch", (model) => model, { sha256: "0".repeat(64) }],
  [
    "more bytes than allowed",
    "model_too_large",
    (model) => model,
    { limits: { maxModelBytes: 1000 } },
  ],
  [
    "no weight that the recipe fits",
    "nothing_to_quantize",
    (model) => model,
    { recipe: { exclude: ["*"] } },
  ],
];
for (const [name, code, make, setting] of badModels) {
  test(`the worker fails the job with ${code} on ${name}, and stores nothing`, async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), "bad-model-"));
    t.after(async () => rm(folder, { recursive: true }));
    const file = path.join(folder, "net.onnx");
    await writeFile(file, make(await readFile(realModel("ocr-orientation"))));
    await writeFile(path.join(folder, "short.bin"), "short");
    const { service, storage, start } = await makeJob(t, pathToFileURL(file).href, setting);
    assert.equal(await exitCode(start()), workerExit.failed);
    const result = service.events.at(-1);
    assert(result?.type === "result");
    assert.deepEqual([result.outcome, result.error?.code], ["Failed", code], result.error?.message);
    assert.deepEqual(await storedNames(storage), []);
  });
}

test("the worker says why a model that was uploaded alone misses its external data", async (t) => {
  const model = modelWithExternalData("weights.bin");
  const { service, storage, start } = await makeJob(t, `upload:sha256:${sha256Of(model)}`);
  const store = await createDirectoryBlobStore(storage);
  await store.write(new Blob([model]).stream());
  assert.equal(await exitCode(start()), workerExit.failed);
  const result = service.events.at(-1);
  assert(result?.type === "result");
  assert.match(
    result.error?.message ?? "",
    /only models from file:\/\/ sources can have external data/,
  );
});

/** y = x · w, reshaped to rows of `columns`. */
async function writeProduct(file: string, columns: number): Promise<void> {
  const shape = { name: "shape", dims: [2n], dataType: TensorProto_DataType.INT64 };
  const weight = floatInitializer("w", [64, 64], (index) => Math.sin(index));
  await writeTinyModel(file, {
    input: [tensorInfo("x", ["n", 64])],
    output: [tensorInfo("y", ["a", "b"])],
    initializer: [weight, { ...shape, int64Data: [-1n, BigInt(columns)] }],
    node: [node("MatMul", ["x", "w"], ["product"]), node("Reshape", ["product", "shape"], ["y"])],
  });
}

const failingEvaluations: [
  what: string,
  code: string,
  setting: { columns: number; hasData: boolean; minCosine: number },
][] = [
  [
    "runs on no generated input",
    "evaluation_failed",
    { columns: 1001, hasData: false, minCosine: 0 },
  ],
  [
    "refuses the caller's data",
    "evaluation_data_invalid",
    { columns: 1001, hasData: true, minCosine: 0 },
  ],
  [
    "is too far from its result",
    "accuracy_below_floor",
    { columns: 64, hasData: true, minCosine: 1 },
  ],
];
for (const [what, code, { columns, hasData, minCosine }] of failingEvaluations) {
  test(`the worker keeps the result and what is known of it where a model ${what}`, async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), "failing-evaluation-"));
    t.after(async () => rm(folder, { recursive: true }));
    const file = path.join(folder, "net.onnx");
    await writeProduct(file, columns);
    const values = Array.from({ length: 192 }, (_, index) => Math.cos(index));
    const data = hasData
      ? pathToFileURL(await writeFloatsNpz(folder, "x", { shape: [3, 1, 64], values })).href
      : undefined;
    const recipe = { scheme: "int8-weight" as const, evaluation: { data, minCosine } };
    const { service, storage, start } = await makeJob(t, pathToFileURL(file).href, { recipe });
    assert.equal(await exitCode(start()), workerExit.failed);
    const result = service.events.at(-1);
    assert(result?.type === "result");
    assert.equal(result.error?.code, code, result.error?.message);
    const { artifacts, telemetry } = summarizeEvents(service.events);
    assert.deepEqual(
      artifacts.map(({ name }) => name),
      ["model.onnx", "report.json"],
    );
    assert.deepEqual(
      (await storedNames(storage)).toSorted(),
      listArtifactHashes(service.events).toSorted(),
    );
    const report = await storedReport(service.events, storage);
    assert.equal(report.weights[0]?.form === null, false);
    assert.deepEqual(report.error, result.error);
    assert(telemetry.size && telemetry.device && telemetry.memory?.workerPeakBytes);
    assert((telemetry.stageSeconds?.evaluate ?? 0) > 0);
    const isMeasured = code === "accuracy_below_floor";
    assert.equal(telemetry.accuracy !== undefined, isMeasured);
    assert.equal(telemetry.memory.resultPeakBytes !== undefined, isMeasured);
    assert.deepEqual(report["accuracy"], telemetry.accuracy);
    assert.deepEqual(report["warnings"], telemetry.warnings);
  });
}

test("the worker takes faults of the evaluation data for what they are", async (t) => {
  const data = "upload:sha256:" + "0".repeat(64);
  const { service, start } = await makeJob(t, orientation, { recipe: { evaluation: { data } } });
  assert.equal(await exitCode(start()), workerExit.failed);
  const result = service.events.at(-1);
  assert(result?.type === "result");
  assert.equal(result.error?.code, "evaluation_data_invalid");
});

test("the worker fails the job with storage_full when the disk is full, and stores nothing", async (t) => {
  const storage = await mountSmallDisk(t);
  if (storage === undefined) return t.skip("Needs the right to mount a small file system");
  const { service, start } = await makeJob(t, orientation, {
    storage,
    recipe: { evaluation: { level: "none" } },
  });
  assert.equal(await exitCode(start()), workerExit.failed);
  const result = service.events.at(-1);
  assert(result?.type === "result");
  assert.equal(result.error?.code, "storage_full");
  assert.deepEqual(await storedNames(storage), []);
});

/** Ways to end a worker in the middle of its evaluation, with child processes at work. */
const endings: [name: string, end: (child: ChildProcess) => unknown][] = [
  ["SIGTERM", (child) => child.kill("SIGTERM")],
  ["the end of its standard input", (child) => child.stdin?.end()],
];
for (const [name, end] of endings) {
  test(`the worker stops on ${name}, leaving no process and no file but the result's`, async (t) => {
    const recipe = { evaluation: { latencyBudgetSeconds: 3600 } };
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
  const { service, start } = await makeJob(t, orientation, {
    recipe: { evaluation: { latencyBudgetSeconds: 3600 } },
  });
  const child = start();
  await service.waitFor((event) => event.type === "log" && event.text.includes("Timing"));
  service.cancelled = true;
  assert.equal(await exitCode(child), workerExit.cancelled);
  await waitForGroupExit(child);
});

test("the worker times the result against the baseline's own", async (t) => {
  const storage = await realpath(await mkdtemp(path.join(tmpdir(), "baseline-")));
  t.after(async () => rm(storage, { recursive: true }));
  const store = await createDirectoryBlobStore(storage);
  const { sha256 } = await store.writeFile(realModel("ocr-orientation"), {});
  for (const [baseline, warnings] of [
    [sha256, []],
    ["0".repeat(64), ["baseline_not_timed"]],
  ] as const) {
    const { service, start } = await makeJob(t, orientation, {
      storage,
      baseline: [{ name: "model.onnx", sha256: baseline }],
    });
    assert.equal(await exitCode(start()), workerExit.completed);
    const { telemetry } = summarizeEvents(service.events);
    assert.equal(telemetry.latency?.baseline !== undefined, warnings.length === 0);
    assert.deepEqual(
      (telemetry.warnings ?? []).map(({ code }) => code).filter((code) => code !== "latency_noisy"),
      warnings,
    );
  }
});

test("the worker stops in the middle of a download that hangs", async (t) => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-length": 100 });
    response.write("begin");
    server.emit("hanging");
  }).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const address = server.address();
  assert(address !== null && typeof address === "object");
  const { start } = await makeJob(t, `http://127.0.0.1:${address.port}/net.onnx`);
  const child = start();
  await once(server, "hanging");
  child.kill("SIGTERM");
  assert.equal(await exitCode(child), workerExit.cancelled);
});

test(
  "the worker keeps the result where the process that runs a model is killed",
  { skip: process.platform !== "linux" },
  async (t) => {
    const recipe = { evaluation: { latencyBudgetSeconds: 3600 } };
    const { service, start } = await makeJob(t, orientation, { recipe });
    const child = start();
    await service.waitFor((event) => event.type === "log" && event.text.includes("Timing"));
    const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
    process.kill(Number(children.split(" ")[0]), "SIGKILL");
    assert.equal(await exitCode(child), workerExit.failed);
    const result = service.events.at(-1);
    assert(result?.type === "result");
    assert.equal(result.error?.code, "evaluation_failed");
    const { artifacts, telemetry } = summarizeEvents(service.events);
    assert.deepEqual(
      artifacts.map(({ name }) => name),
      ["model.onnx", "report.json"],
    );
    assert(telemetry.accuracy);
  },
);

test(
  "the worker chooses formats without times where the process that runs candidates is killed",
  { skip: process.platform !== "linux" },
  async (t) => {
    const recipe = { evaluation: { latencyBudgetSeconds: 3600 } };
    const { service, start } = await makeJob(t, orientation, { recipe });
    const child = start();
    await service.waitFor(
      (event) =>
        event.type === "telemetry" &&
        event.telemetry.progress?.message?.startsWith("Timed both models") === true,
    );
    const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
    process.kill(Number(children.split(" ")[0]), "SIGKILL");
    await service.waitFor(
      (event) => event.type === "log" && event.text.includes("Candidates are not timed"),
    );
    await service.waitFor((event) => event.type === "artifact");
    child.kill("SIGTERM");
    assert.equal(await exitCode(child), workerExit.cancelled);
  },
);

test("a worker that is killed leaves no half-written file where blobs are, and no process", async (t) => {
  const { service, storage, start } = await makeJob(t, orientation, {
    recipe: { evaluation: { latencyBudgetSeconds: 3600 } },
  });
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

test("a worker that the service does not know ends at once", async (t) => {
  const { start, service } = await makeJob(t, orientation);
  service.token = "another";
  assert.equal(await exitCode(start()), workerExit.crashed);
});

/** Resolves when no process of the worker's group is left. */
async function waitForGroupExit(child: ChildProcess): Promise<void> {
  await exitCode(child);
  const { pid } = child;
  while (pid !== undefined && isGroupAlive(pid)) await new Promise(setImmediate);
}
