import { maxBatchJobs } from "../../src/contract/batches/batch.ts";

export interface SpecCase {
  readonly kind: "CompressionJob" | "Batch";
  readonly spec: Readonly<Record<string, unknown>>;
  /** The field that is wrong, in the API server's notation below `spec`; none where all are valid. */
  readonly wrong?: string | undefined;
}

const source = "https://models.test/detector.onnx";
const sha256 = "0123456789abcdef".repeat(4);

function job(fields: object, wrong?: string): SpecCase {
  return {
    kind: "CompressionJob",
    spec: { model: { source }, target: "cpu", ...fields },
    wrong,
  };
}

function batch(fields: object, wrong?: string): SpecCase {
  return {
    kind: "Batch",
    spec: { models: [{ source }], targets: ["cpu"], ...fields },
    wrong,
  };
}

function models(count: number): object[] {
  return Array.from({ length: count }, (_, i) => ({ source: `https://models.test/${i}.onnx` }));
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `target-${i}`);
}

const sha = "0123456789".repeat(4);
const recording = { sha, branch: "main", recordBaseline: true };

const everything = {
  name: "Detector für alle 🙂",
  kind: "quantize",
  model: { source, sha256, name: "detector-v2.onnx" },
  recipe: {
    preset: "vnni",
    scheme: "int4-weight",
    granularity: "block",
    blockSize: 64,
    symmetric: false,
    reduceRange: true,
    operators: "contrib",
    fallback: "none",
    exclude: ["/head/*"],
    minElements: 0,
    parallelism: 64,
    sharding: { maxShardBytes: 65_536, stages: 4, maxStageBytes: 1024, balance: "time" },
    evaluation: {
      level: "weights",
      data: `upload:sha256:${sha256}`,
      samples: 1,
      latencyBudgetSeconds: 0.5,
      minCosine: -1,
    },
  },
  gates: {
    maxSizeRatio: 0.5,
    minSqnrDb: -3,
    minCosine: 1,
    minTop1: 0.9,
    maxLatencyRatio: 1.05,
    maxSizeRegression: 0,
    maxSqnrDropDb: 0.5,
    maxLatencyRegression: 0.05,
    warnGates: ["maxLatencyRatio", "maxLatencyRegression"],
  },
  dryRun: true,
  deadlineSeconds: 604_800,
  labels: { team: "vision", "example.com/release": "", build: "7" },
  cancel: true,
  suspend: true,
  ttlSecondsAfterFinished: 0,
};

/** Valid and invalid specs, each with what is special about it. */
export const specCases: Readonly<Record<string, SpecCase>> = {
  "a model and a target": job({}),
  "every field": job(everything),
  "a model under a folder": job({ model: { source: "file:///models/a.onnx" } }),
  "an uploaded model": job({ model: { source: `upload:sha256:${sha256}` } }),
  "a source as long as allowed": job({ model: { source: source.padEnd(2048, "x") } }),
  "a source of as many bytes as allowed": job({
    model: { source: `${source}x${"ü".repeat(1007)}` },
  }),
  "a source of more bytes": job(
    { model: { source: `${source}x${"ü".repeat(1008)}` } },
    "model.source",
  ),
  "a name of 200 emoji": job({ name: "🙂".repeat(200) }),
  "a name of 201 emoji": job({ name: "🙂".repeat(201) }, "name"),
  "32 labels": job({ labels: Object.fromEntries(names(32).map((name) => [name, name])) }),
  "a recipe without a scheme": job({ recipe: { granularity: "block" } }),
  "int4-weight without a granularity": job({ recipe: { scheme: "int4-weight" } }),
  "int8-weight in blocks": job({ recipe: { scheme: "int8-weight", granularity: "block" } }),
  "an empty recipe": job({ recipe: {} }),
  "an empty list of exclusions": job({ recipe: { exclude: [] } }),
  "one shard for all": job({ recipe: { sharding: { maxShardBytes: Number.MAX_SAFE_INTEGER } } }),

  "no model": job({ model: undefined }, "model"),
  "no target": job({ target: undefined }, "target"),
  "a model without a source": job({ model: {} }, "model.source"),
  "a model as a string": job({ model: source }, "model"),
  "a source that is no URL": job({ model: { source: "detector.onnx" } }, "model.source"),
  "a source whose host is none": job({ model: { source: "https://[" } }, "model.source"),
  "a source whose port is none": job(
    { model: { source: "https://models.test:a/net" } },
    "model.source",
  ),
  "data without a host": job(
    { recipe: { evaluation: { data: "https://" } } },
    "recipe.evaluation.data",
  ),
  "a source with a space and a percent sign": job({
    model: { source: "https://models.test/50% of a net?of=50%" },
  }),
  "a source with another scheme": job(
    { model: { source: "ftp://models.test/a.onnx" } },
    "model.source",
  ),
  "an upload with a hash in capitals": job(
    { model: { source: `upload:sha256:${sha256.toUpperCase()}` } },
    "model.source",
  ),
  "an upload with more behind its hash": job(
    { model: { source: `upload:sha256:${sha256}/a` } },
    "model.source",
  ),
  "a source that is too long": job({ model: { source: source.padEnd(2049, "x") } }, "model.source"),
  "a hash that is too short": job({ model: { source, sha256: sha256.slice(1) } }, "model.sha256"),
  "a hash with a line behind it": job({ model: { source, sha256: `${sha256}\n` } }, "model.sha256"),
  "a name of a model with a slash": job({ model: { source, name: "a/b" } }, "model.name"),
  "a field that a model does not have": job({ model: { source, url: source } }, "model.url"),
  "a field that a job does not have": job({ modle: source }, "modle"),
  "a target in capitals": job({ target: "CPU" }, "target"),
  "a target that is too long": job({ target: "a".repeat(64) }, "target"),
  "an empty target": job({ target: "" }, "target"),
  "another kind": job({ kind: "prune" }, "kind"),
  "an empty name": job({ name: "" }, "name"),
  "a name that is too long": job({ name: "a".repeat(201) }, "name"),
  "a recipe as a string": job({ recipe: "fp16" }, "recipe"),
  "another scheme": job({ recipe: { scheme: "int2" } }, "recipe.scheme"),
  "another block size": job({ recipe: { blockSize: 48 } }, "recipe.blockSize"),
  "int4-weight for each channel": job(
    { recipe: { scheme: "int4-weight", granularity: "channel" } },
    "recipe.granularity",
  ),
  "int4-weight for each tensor": job(
    { recipe: { scheme: "int4-weight", granularity: "tensor" } },
    "recipe.granularity",
  ),
  "int8-dynamic in blocks": job(
    { recipe: { scheme: "int8-dynamic", granularity: "block" } },
    "recipe.granularity",
  ),
  "no element at least": job({ recipe: { minElements: -1 } }, "recipe.minElements"),
  "half an element": job({ recipe: { minElements: 0.5 } }, "recipe.minElements"),
  "no pod": job({ recipe: { parallelism: 0 } }, "recipe.parallelism"),
  "too many pods": job({ recipe: { parallelism: 65 } }, "recipe.parallelism"),
  "symmetric as a string": job({ recipe: { symmetric: "yes" } }, "recipe.symmetric"),
  "too many exclusions": job({ recipe: { exclude: names(257) } }, "recipe.exclude"),
  "an empty exclusion": job({ recipe: { exclude: ["/a", ""] } }, "recipe.exclude[1]"),
  "a shard that is too small": job(
    { recipe: { sharding: { maxShardBytes: 1 } } },
    "recipe.sharding.maxShardBytes",
  ),
  "more bytes than can be counted": job(
    { recipe: { sharding: { maxShardBytes: 2 ** 53 } } },
    "recipe.sharding.maxShardBytes",
  ),
  "too many stages": job({ recipe: { sharding: { stages: 65 } } }, "recipe.sharding.stages"),
  "another balance": job({ recipe: { sharding: { balance: "luck" } } }, "recipe.sharding.balance"),
  "data that is no URL": job(
    { recipe: { evaluation: { data: "samples.npz" } } },
    "recipe.evaluation.data",
  ),
  "a cosine above 1": job(
    { recipe: { evaluation: { minCosine: 1.01 } } },
    "recipe.evaluation.minCosine",
  ),
  "a gate of nothing": job({ gates: { maxSizeRatio: 0 } }, "gates.maxSizeRatio"),
  "a gate below nothing": job({ gates: { maxLatencyRatio: -1 } }, "gates.maxLatencyRatio"),
  "a regression below nothing": job({ gates: { maxSqnrDropDb: -1 } }, "gates.maxSqnrDropDb"),
  "an agreement above 1": job({ gates: { minTop1: 1.1 } }, "gates.minTop1"),
  "a warning of a gate that does not exist": job(
    { gates: { warnGates: ["maxSize"] } },
    "gates.warnGates[0]",
  ),
  "a gate that does not exist": job({ gates: { maxSize: 1 } }, "gates.maxSize"),
  "dryRun as a number": job({ dryRun: 1 }, "dryRun"),
  "no time": job({ deadlineSeconds: 0 }, "deadlineSeconds"),
  "more than a week": job({ deadlineSeconds: 604_801 }, "deadlineSeconds"),
  "33 labels": job({ labels: Object.fromEntries(names(33).map((name) => [name, name])) }, "labels"),
  "a label with a space in its key": job({ labels: { "a b": "c" } }, "labels"),
  "a label with a space in its value": job({ labels: { a: "b c" } }, "labels.a"),
  "a time to live below nothing": job({ ttlSecondsAfterFinished: -1 }, "ttlSecondsAfterFinished"),
  "cancel as a string": job({ cancel: "true" }, "cancel"),

  "one model and one target": batch({}),
  "a batch with every field": batch({
    ...everything,
    model: undefined,
    suite: "nightly",
    revision: { ...recording, base: { branch: "release/1", sha, mergeBase: sha } },
    models: [everything.model],
    targets: ["cpu", "cpu-int8"],
    parallelism: 1,
    failFast: true,
  }),
  "1,000 models": batch({ models: models(1000), targets: ["cpu", "cpu-int8"] }),
  "as many jobs as allowed": batch({ models: models(40), targets: names(maxBatchJobs / 40) }),

  "no models": batch({ models: [] }, "models"),
  "no targets": batch({ targets: [] }, "targets"),
  "too many models": batch({ models: models(1001) }, "models"),
  "too many targets": batch({ targets: names(65) }, "targets"),
  "too many jobs": batch({ models: models(40), targets: names(maxBatchJobs / 40 + 1) }, "models"),
  "a target twice": batch({ targets: ["cpu", "cpu-int8", "cpu"] }, "targets"),
  "a target that no name can be": batch({ targets: ["cpu", "-"] }, "targets[1]"),
  "a model that is nowhere": batch(
    { models: [{ source }, { source: "nowhere" }] },
    "models[1].source",
  ),
  "no job at once": batch({ parallelism: 0 }, "parallelism"),
  "too many jobs at once": batch({ parallelism: maxBatchJobs + 1 }, "parallelism"),
  "an empty suite": batch({ suite: "" }, "suite"),
  "a revision": batch({ revision: { sha } }),
  "a revision by SHA-256": batch({ revision: { sha: sha256 } }),
  "a revision without a commit": batch({ revision: { branch: "main" } }, "revision.sha"),
  "a revision with a short commit": batch({ revision: { sha: "0123456" } }, "revision.sha"),
  "a revision with an empty branch": batch({ revision: { sha, branch: "" } }, "revision.branch"),
  "a base without a branch": batch({ revision: { sha, base: { sha } } }, "revision.base.branch"),
  "baselines of no suite": batch({ revision: recording }, "revision"),
  "baselines of no branch": batch(
    { suite: "nightly", revision: { sha, recordBaseline: true } },
    "revision",
  ),
  "one model as in a job": batch({ model: { source } }, "model"),
  "failFast as a string": batch({ failFast: "no" }, "failFast"),
  "a recipe that cannot be": batch(
    { recipe: { scheme: "int4-weight", granularity: "tensor" } },
    "recipe.granularity",
  ),
};
