import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { json } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import type { JobKind } from "../../src/contract/jobs/status.ts";
import type { WorkerEvent } from "../../src/contract/worker-protocol/messages.ts";
import { workerExit } from "../../src/contract/worker-protocol/exit-codes.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { TensorProto_DataType } from "../../src/engine/onnx/onnx_pb.js";
import { writeFloatsNpz } from "../support/npz.ts";
import { realModel } from "../support/real-models.ts";
import { mountSmallDisk } from "../support/mount-small-disk.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";
import { modelOfOpset, modelWithExternalData } from "./bad-models.ts";
import {
  makeJob,
  exitCode,
  storedNames,
  orientation,
  summarizeEvents,
  listArtifactHashes,
  type Setting,
} from "./worker-process.ts";

function sha256Of(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

const timed: PartialRecipe = { evaluation: { latencyBudgetSeconds: 0.1 } };

test("the worker compresses a real model, and reports its stages, figures and artifacts", async (t) => {
  const { service, storage, start } = await makeJob(t, orientation, { recipe: timed });
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
  assert(telemetry.usage.peakMemoryBytes > telemetry.memory.workerPeakBytes + 1e8);
  const memoryRatio = telemetry.forecast.peakMemoryBytes / telemetry.usage.peakMemoryBytes;
  assert(memoryRatio > 0.9 && memoryRatio < 1.5, `memory: ${memoryRatio} of what was measured`);
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
      ["graph.json", "graph"],
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
  const { changes } = changedReport.parse(await readStored("report", events, storage));
  const { graph } = describedGraph.parse(await readStored("graph", events, storage));
  const original = new Map(graph.nodes.map(({ name, opType }) => [name, opType]));
  const removed = changes.nodeChanges.filter(({ how }) => how === "removed");
  assert.ok(removed.some(({ op }) => op === "Clip"));
  assert.deepEqual(
    removed.filter(({ name, op }) => original.get(name) !== op),
    [],
    "the original's graph has the nodes that became part of others",
  );
});

const changedReport = z.looseObject({
  changes: z.looseObject({
    nodeChanges: z.array(z.looseObject({ how: z.string(), name: z.string(), op: z.string() })),
  }),
});
const describedGraph = z.looseObject({
  graph: z.looseObject({
    nodes: z.array(z.looseObject({ name: z.string(), opType: z.string() })),
  }),
});

const plannedRecipes: [kind: JobKind, recipe: PartialRecipe][] = [
  ["compress", { scheme: "int8-weight", granularity: "channel" }],
  ["quantize", { scheme: "fp16" }],
];
for (const [kind, recipe] of plannedRecipes) {
  test(`the worker's dry run of ${kind} with ${recipe.scheme} predicts the result's exact size and the job's costs, and writes no model`, async (t) => {
    const run = async (setting: Setting) => {
      const { service, storage, start } = await makeJob(t, orientation, { kind, ...setting });
      assert.equal(await exitCode(start()), workerExit.completed);
      return {
        ...summarizeEvents(service.events),
        report: await storedReport(service.events, storage),
      };
    };
    const data = "https://data.example/d.npz?sig=SECRET";
    const asked = { ...recipe, evaluation: { data } };
    const earlier = { originalBytes: 1e6, peakMemoryBytes: 2e6, diskBytes: 3e6, seconds: 1 };
    const dry = await run({ dryRun: true, recipe: asked, earlierCosts: [earlier] });
    const real = await run({ recipe: { ...recipe, evaluation: { level: "none" } } });

    const { size, weights } = dry.telemetry;
    assert.deepEqual(size, { ...real.telemetry.size, predicted: true });
    assert.equal(size.resultBytes, real.artifacts.find(({ name }) => name === "model.onnx")?.bytes);
    assert.deepEqual(weights, real.telemetry.weights);
    assert.equal(dry.telemetry.accuracy, undefined);
    assert.deepEqual(
      dry.artifacts.map(({ name }) => name),
      ["graph.json", "report.json"],
    );
    assert.deepEqual(
      dry.report.weights,
      real.report.weights.map((weight) => ({ ...weight, error: null })),
    );
    assert.match(
      JSON.stringify(dry.report),
      /"data":"https:\/\/data\.example\/d\.npz\?sig=\*\*\*"/,
    );
    assert.deepEqual(dry.statuses, real.statuses);
    const { forecast, usage } = real.telemetry;
    assert(forecast && usage && dry.telemetry.forecast);
    const memoryRatio = forecast.peakMemoryBytes / usage.peakMemoryBytes;
    assert(memoryRatio > 0.9 && memoryRatio < 1.2, `memory: ${memoryRatio} of what was measured`);
    const missedBytes = usage.diskBytes - forecast.diskBytes;
    assert(Math.abs(missedBytes) < 1e6, `disk: ${missedBytes} bytes more were measured`);
    const evaluated = dry.telemetry.forecast;
    assert(evaluated.peakMemoryBytes > 1.5 * forecast.peakMemoryBytes);
    assert.deepEqual([evaluated.seconds, forecast.seconds], [1e-6 * size.originalBytes, undefined]);
    assert.equal(dry.telemetry.usage, undefined);
  });
}

const weightsReport = z.looseObject({
  weights: z.array(z.looseObject({ form: z.string().nullable() })),
  error: z.looseObject({ code: z.string() }).optional(),
});

async function storedReport(events: readonly WorkerEvent[], storage: string) {
  return weightsReport.parse(await readStored("report", events, storage));
}

async function readStored(
  kind: "report" | "graph",
  events: readonly WorkerEvent[],
  storage: string,
): Promise<unknown> {
  const file = summarizeEvents(events).artifacts.find((artifact) => artifact.kind === kind);
  const blobs = await createDirectoryBlobStore(storage);
  return json(blobs.read(file?.sha256 ?? ""));
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
      ["graph.json", "graph"],
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

test("the worker says how a model that was uploaded alone gets its external data", async (t) => {
  const model = modelWithExternalData("weights.bin");
  const { service, storage, start } = await makeJob(t, `upload:sha256:${sha256Of(model)}`);
  const store = await createDirectoryBlobStore(storage);
  await store.write(new Blob([model]).stream());
  assert.equal(await exitCode(start()), workerExit.failed);
  const result = service.events.at(-1);
  assert(result?.type === "result");
  assert.match(
    result.error?.message ?? "",
    /"weights\.bin" does not exist; upload it too, and name both files in a manifest/,
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
      ["model.onnx", "graph.json", "report.json"],
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
      recipe: timed,
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

test("a worker that the service does not know ends at once", async (t) => {
  const { start, service } = await makeJob(t, orientation);
  service.token = "another";
  assert.equal(await exitCode(start()), workerExit.crashed);
});
