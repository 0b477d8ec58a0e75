import assert from "node:assert/strict";
import test from "node:test";
import { type Baseline, baselineFigures } from "../../src/contract/jobs/baseline.ts";
import { evaluateGates } from "../../src/contract/jobs/evaluate-gates.ts";
import { type GateLimits, hasFailedGate } from "../../src/contract/jobs/gate.ts";
import { nextStep } from "../../src/contract/jobs/next-steps.ts";
import type { Telemetry } from "../../src/contract/jobs/telemetry.ts";
import { makeCompletedJob } from "../support/make-job.ts";

const device = {
  executionProvider: "cpu",
  name: "Test CPU",
  cores: 4,
  instructionSets: ["avx2", "fma"],
  threads: 4,
  runtime: "onnxruntime 1.30.0",
};

function makeLatency(p50Ms: number, runs = 20) {
  return { p50Ms, p95Ms: p50Ms, p99Ms: p50Ms, runs };
}

function makeTelemetry(overrides: Partial<Telemetry> = {}): Telemetry {
  return {
    progress: { fraction: 1 },
    size: { originalBytes: 1000, resultBytes: 300, ratio: 0.3, predicted: false },
    accuracy: {
      level: "outputs",
      data: "caller",
      samples: 8,
      sqnrDb: 30,
      cosine: 0.99,
      outputs: [
        { name: "scores", sqnrDb: 30, cosine: 0.99, maxAbsoluteError: 0.1, top1Agreement: 0.9 },
        { name: "classes", sqnrDb: 40, cosine: 0.999, maxAbsoluteError: 0.1, top1Agreement: 1 },
        { name: "loss", sqnrDb: 40, cosine: 0.999, maxAbsoluteError: 0.1, top1Agreement: null },
      ],
    },
    latency: { original: makeLatency(10), result: makeLatency(5), ratio: 0.5 },
    device,
    warnings: [],
    ...overrides,
  };
}

function makeBaseline(overrides: Partial<Telemetry> = {}): Baseline {
  return {
    ...baselineFigures(makeTelemetry(overrides)),
    jobId: `job-${"0".repeat(26)}`,
    sha: "a".repeat(40),
    branch: "main",
    by: "baseSha",
  };
}

function evaluateGate(
  limits: GateLimits,
  now: Partial<Telemetry> = {},
  before: Partial<Telemetry> | null = {},
) {
  const results = evaluateGates(limits, makeTelemetry(now), before && makeBaseline(before));
  assert.equal(results.length, 1);
  return results[0];
}

test("evaluateGates() passes a figure that is exactly at its limit", () => {
  const known = { gate: "maxSizeRatio", limit: 0.3, level: "fail" };
  assert.deepEqual(evaluateGate({ maxSizeRatio: 0.3 }), {
    ...known,
    actual: 0.3,
    baseline: null,
    passed: true,
  });
});

test("evaluateGates() fails a figure beyond its limit", () => {
  assert.equal(evaluateGate({ maxSizeRatio: 0.29 })?.passed, false);
  assert.equal(evaluateGate({ minSqnrDb: 30.1 })?.passed, false);
});

test("evaluateGates() fails a gate without a measured figure, with a baseline and without", () => {
  const known = { level: "fail", actual: null, baseline: null, passed: false };
  assert.deepEqual(evaluateGate({ minSqnrDb: 20 }, { accuracy: undefined }), {
    ...known,
    gate: "minSqnrDb",
    limit: 20,
  });
  const regression = { ...known, gate: "maxSqnrDropDb", limit: 1 };
  assert.deepEqual(evaluateGate({ maxSqnrDropDb: 1 }, { accuracy: undefined }), regression);
  assert.deepEqual(evaluateGate({ maxSqnrDropDb: 1 }, { accuracy: undefined }, null), regression);
});

test("evaluateGates() limits the worst top-1 agreement of the outputs that have one", () => {
  assert.deepEqual(
    [evaluateGate({ minTop1: 0.9 })?.actual, evaluateGate({ minTop1: 0.9 })?.passed],
    [0.9, true],
  );
  assert.equal(evaluateGate({ minTop1: 0.91 })?.passed, false);
  const outputs = [
    { name: "loss", sqnrDb: 40, cosine: 0.999, maxAbsoluteError: 0.1, top1Agreement: null },
  ];
  assert.equal(evaluateGate({ minTop1: 0 }, { accuracy: { ...accuracy, outputs } })?.actual, null);
});

test("evaluateGates() limits the perplexity and the divergence of language models", () => {
  const figures = { originalPerplexity: 20, resultPerplexity: 22, perplexityRatio: 1.1 };
  const language = { tokens: 99, windowTokens: 100, ...figures, klDivergence: 0.2 };
  const now = { accuracy: { ...accuracy, language } };
  assert.equal(evaluateGate({ maxPerplexityRatio: 1.1 }, now)?.passed, true);
  assert.equal(evaluateGate({ maxPerplexityRatio: 1.09 }, now)?.passed, false);
  assert.equal(evaluateGate({ maxKlDivergence: 0.2 }, now)?.passed, true);
  assert.equal(evaluateGate({ maxKlDivergence: 0.19 }, now)?.passed, false);
  assert.equal(evaluateGate({ maxKlDivergence: 1 })?.actual, null);
});

const grown = { size: { originalBytes: 1000, resultBytes: 330, ratio: 0.33, predicted: false } };
const accuracy: NonNullable<Telemetry["accuracy"]> = {
  level: "outputs",
  data: "caller",
  samples: 8,
  sqnrDb: 27,
  cosine: 0.9,
  outputs: [],
};
const slower = { latency: { original: makeLatency(10), result: makeLatency(6), ratio: 0.6 } };

const changes: readonly [
  GateLimits,
  Partial<Telemetry>,
  { actual: number; baseline: number; passed: boolean },
][] = [
  [{ maxSizeRegression: 0.2 }, grown, { actual: 0.1, baseline: 300, passed: true }],
  [{ maxSizeRegression: 0.05 }, grown, { actual: 0.1, baseline: 300, passed: false }],
  [{ maxSizeRegression: 0 }, {}, { actual: 0, baseline: 300, passed: true }],
  [{ maxSqnrDropDb: 3 }, { accuracy }, { actual: 3, baseline: 30, passed: true }],
  [{ maxSqnrDropDb: 2.9 }, { accuracy }, { actual: 3, baseline: 30, passed: false }],
];

for (const [limits, now, want] of changes) {
  const against = JSON.stringify(limits);
  test(`evaluateGates() computes a change of ${want.actual} against ${against}`, () => {
    const result = evaluateGate(limits, now);
    assert.ok(Math.abs((result?.actual ?? NaN) - want.actual) < 1e-9, String(result?.actual));
    assert.deepEqual(
      [result?.baseline, result?.passed, result?.level],
      [want.baseline, want.passed, "fail"],
    );
  });
}

test("evaluateGates() compares no accuracy on one file of samples with that on another", () => {
  const [one, other] = ["1".repeat(64), "2".repeat(64)];
  const on = (dataSha256?: string) => ({ accuracy: { ...accuracy, dataSha256 } });
  const compare = (now: string | undefined, before: string | undefined) =>
    evaluateGate({ maxSqnrDropDb: 3 }, on(now), on(before));
  assert.deepEqual(
    [compare(one, one), compare(one, undefined), compare(undefined, one)].map(
      (gate) => gate?.actual,
    ),
    [0, 0, 0],
  );
  const { actual, level, note = "" } = compare(one, other) ?? {};
  assert.deepEqual([actual, level], [null, "warn"]);
  assert.match(note, /^Not comparable: the SHA-256 of the evaluation data is "1{64}", the base/);
  const next = (before: string | null) => {
    const given = before === null ? null : makeBaseline(on(before));
    const telemetry = makeTelemetry(on(one));
    const gates = evaluateGates({ maxSqnrDropDb: 3 }, telemetry, given);
    return nextStep(makeCompletedJob({ telemetry, gates }));
  };
  assert.match(next(other) ?? "", /^Compare the figures yourself/);
  assert.match(next(null) ?? "", /^Run the workflow once on the base branch/);
});

test("evaluateGates() sees no regression in what got better", () => {
  const smaller = {
    size: { originalBytes: 1000, resultBytes: 150, ratio: 0.15, predicted: false },
  };
  assert.deepEqual(
    [
      evaluateGate({ maxSizeRegression: 0 }, smaller)?.actual,
      evaluateGate({ maxSizeRegression: 0 }, smaller)?.passed,
    ],
    [-0.5, true],
  );
});

test("evaluateGates() decides nothing by latencies of separate runs", () => {
  const limits = [0, 0.1, 0.16, 0.25, 10];
  for (const limit of limits) {
    const result = evaluateGate({ maxLatencyRegression: limit }, slower);
    assert.deepEqual(
      [result?.passed, result?.level, result?.baseline, result?.actual],
      [false, "warn", 5, null],
    );
    assert.match(result?.note ?? "", /was not timed in the same run/);
  }
});

test("evaluateGates() says what would decide a gate whose interval contains the limit", () => {
  const times = { original: makeLatency(10), result: makeLatency(10) };
  const note = (limit: number) => {
    const latency = { ...times, ...makeInterval(0.96, 1, 1.04) };
    return evaluateGate({ maxLatencyRatio: limit }, { latency })?.note ?? "";
  };
  assert.match(note(1.02), /About 4 times as many sessions would decide it/);
  assert.match(note(0.97), /About 2 times as many sessions would decide it/);
  assert.match(note(1.001), /at the limit: no number of sessions decides it$/);
});

function makeInterval(ratioLow: number, ratio: number, ratioHigh: number) {
  return { ratioLow, ratio, ratioHigh, sessions: 8 };
}

const intervalCases: readonly [string, number, { passed: boolean; level: "fail" | "warn" }][] = [
  ["passes an interval that ends at the limit", 1, { passed: true, level: "fail" }],
  ["fails an interval that lies beyond the limit", 0.95, { passed: false, level: "fail" }],
  ["warns of an interval that begins at the limit", 0.96, { passed: false, level: "warn" }],
  ["warns of an interval whose end is beyond the limit", 0.99, { passed: false, level: "warn" }],
];
for (const [what, limit, verdict] of intervalCases) {
  test(`evaluateGates() ${what}`, () => {
    const times = { original: makeLatency(10), result: makeLatency(9.8) };
    const latency = { ...times, ...makeInterval(0.96, 0.98, 1) };
    const note = verdict.level === "warn" ? /^The confidence interval, 0\.960 to 1\.000/ : /^$/;
    const result = evaluateGate({ maxLatencyRatio: limit }, { latency });
    assert.deepEqual(
      [result?.actual, result?.passed, result?.level],
      [0.98, verdict.passed, verdict.level],
    );
    assert.match(result?.note ?? "", note);
  });
}

test("evaluateGates() compares the change with the interval of the same run, on any hardware", () => {
  const times = { original: makeLatency(10), result: makeLatency(20), ratio: 2 };
  const baseline = makeInterval(1.04, 1.05, 1.06);
  const now = { latency: { ...times, baseline }, device: { ...device, name: "Other" } };
  const verdicts = [0.07, 0.05, 0.03].map((limit) => {
    const result = evaluateGate({ maxLatencyRegression: limit }, now);
    return [result?.passed, result?.level, result?.baseline];
  });
  assert.deepEqual(verdicts, [
    [true, "fail", 5],
    [false, "warn", 5],
    [false, "fail", 5],
  ]);
});

test("evaluateGates() says in words that an interval over few sessions says nothing", () => {
  const times = { original: makeLatency(10), result: makeLatency(9.8) };
  const measured = { ratio: 0.98, ratioLow: 3e-11, ratioHigh: 14_947_753_084.25, sessions: 2 };
  const latency = { ...times, ...measured, baseline: measured };
  for (const limits of [{ maxLatencyRatio: 1 }, { maxLatencyRegression: 0.05 }]) {
    const result = evaluateGate(limits, { latency });
    assert.deepEqual([result?.passed, result?.level], [false, "warn"]);
    assert.equal(result?.note, "The latency was timed in 2 sessions: too few for an interval");
  }
});

test("evaluateGates() fails a latency ratio that was not measured", () => {
  const result = evaluateGate({ maxLatencyRatio: 1 }, { latency: undefined });
  assert.deepEqual([result?.passed, result?.level, result?.actual], [false, "fail", null]);
});

const incomparableCases: readonly [
  string,
  GateLimits,
  Partial<Telemetry>,
  Partial<Telemetry> | null,
  RegExp,
][] = [
  ["without a baseline", { maxSizeRegression: 1 }, {}, null, /no baseline/],
  [
    "against a baseline without the figure",
    { maxLatencyRegression: 1 },
    {},
    { latency: undefined },
    /no such figure/,
  ],
  [
    "on another processor",
    { maxLatencyRegression: 1 },
    { device: { ...device, name: "Other" } },
    {},
    /processor is "Other"/,
  ],
  [
    "with other instruction sets",
    { maxLatencyRegression: 1 },
    { device: { ...device, instructionSets: ["avx2", "fma", "avx512_vnni"] } },
    {},
    /instruction sets is "avx2, fma, avx512_vnni", the baseline's "avx2, fma"/,
  ],
  [
    "on more cores",
    { maxLatencyRegression: 1 },
    { device: { ...device, cores: 8 } },
    {},
    /cores is "8"/,
  ],
  [
    "with more threads",
    { maxLatencyRegression: 1 },
    { device: { ...device, threads: 8 } },
    {},
    /threads is "8"/,
  ],
  [
    "with another runtime",
    { maxLatencyRegression: 1 },
    { device: { ...device, runtime: "x" } },
    {},
    /runtime is "x"/,
  ],
  [
    "on another provider",
    { maxLatencyRegression: 1 },
    { device: { ...device, executionProvider: "cuda" } },
    {},
    /cuda/,
  ],
  [
    "on a device that is not known",
    { maxLatencyRegression: 1 },
    { device: undefined },
    {},
    /"unknown"/,
  ],
  [
    "with two runs",
    { maxLatencyRegression: 1 },
    { latency: { ...slower.latency, result: makeLatency(6, 2) } },
    {},
    /3 runs/,
  ],
  [
    "at another level",
    { maxSqnrDropDb: 9 },
    { accuracy: { ...accuracy, level: "weights" } },
    {},
    /"weights"/,
  ],
  [
    "on other samples",
    { maxSqnrDropDb: 9 },
    { accuracy: { ...accuracy, data: "generated" } },
    {},
    /"generated"/,
  ],
  [
    "against nothing",
    { maxSizeRegression: 1 },
    {},
    { size: { originalBytes: 1, resultBytes: 0, ratio: 0, predicted: false } },
    /is 0/,
  ],
];

for (const [how, limits, now, before, note] of incomparableCases) {
  test(`evaluateGates() warns of ${Object.keys(limits)[0]} ${how}`, () => {
    const result = evaluateGate(limits, now, before);
    assert.deepEqual([result?.passed, result?.level, result?.actual], [false, "warn", null]);
    assert.match(result?.note ?? "", note);
  });
}

test("evaluateGates() computes a change of size and SQNR across hardware", () => {
  const now = { device: { ...device, name: "Other" } };
  assert.equal(evaluateGate({ maxSizeRegression: 0 }, now)?.passed, true);
  assert.equal(evaluateGate({ maxSqnrDropDb: 0 }, now)?.passed, true);
});

test("hasFailedGate() ignores gates that only warn", () => {
  const limits = { maxSizeRatio: 0.1, maxSizeRegression: 0.05 };
  const telemetry = makeTelemetry(grown);
  const warned = evaluateGates(
    { ...limits, warnGates: ["maxSizeRatio", "maxSizeRegression"] },
    telemetry,
    makeBaseline(),
  );
  assert.deepEqual(
    warned.map(({ gate, level, passed }) => [gate, level, passed]),
    [
      ["maxSizeRatio", "warn", false],
      ["maxSizeRegression", "warn", false],
    ],
  );
  assert.equal(hasFailedGate(warned), false);
  assert.equal(
    hasFailedGate(
      evaluateGates({ ...limits, warnGates: ["maxSizeRatio"] }, telemetry, makeBaseline()),
    ),
    true,
  );
});
