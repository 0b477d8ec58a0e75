import assert from "node:assert/strict";
import test from "node:test";
import { describeGate, describeLimit } from "../../src/contract/jobs/describe-gate.ts";
import { gateName } from "../../src/contract/jobs/gate-table.ts";
import type { GateResult } from "../../src/contract/jobs/gate.ts";
import { nextStep } from "../../src/contract/jobs/next-steps.ts";

function makeGate(fields: Partial<GateResult> & Pick<GateResult, "gate">): GateResult {
  return { limit: 3, actual: 15.68, baseline: 23.1, level: "fail", passed: false, ...fields };
}

const sentences: readonly [Partial<GateResult> & Pick<GateResult, "gate">, string][] = [
  [{ gate: "maxSqnrDropDb" }, "lost 15.7 dB against main; 3 dB are allowed"],
  [{ gate: "maxSqnrDropDb", actual: -2, limit: 1 }, "gained 2 dB against main; 1 dB is allowed"],
  [{ gate: "maxSqnrDropDb", actual: 0 }, "lost no accuracy against main; 3 dB are allowed"],
  [
    { gate: "maxSizeRatio", actual: 0.268, limit: 0.25 },
    "has 26.8 % of the original's size; 25 % are allowed",
  ],
  [
    { gate: "maxSizeRatio", actual: 0.25001, limit: 0.25 },
    "has 25.001 % of the original's size; 25 % are allowed",
  ],
  [
    { gate: "minCosine", actual: 0.9057, limit: 0.95 },
    "has a cosine similarity of 0.9057; 0.95 is required",
  ],
  [
    { gate: "maxPerplexityRatio", actual: 1.142, limit: 1.1 },
    "has 114.2 % of the original's perplexity (lower is better); 110 % are allowed",
  ],
  [
    { gate: "maxKlDivergence", actual: 0.23, limit: 0.1 },
    "predicts 0.23 nats away from the original; 0.1 nats are allowed",
  ],
  [
    { gate: "maxSizeRegression", actual: -0.025, limit: 0.05, passed: true },
    "is 2.5 % smaller than that of main; 5 % are allowed",
  ],
  [
    {
      gate: "maxLatencyRegression",
      actual: 0.072,
      limit: 0.05,
      interval: { low: 0.06, high: 0.081 },
    },
    "became 7.2 % slower against main (95 % sure: 6 % to 8.1 %); 5 % are allowed",
  ],
  [
    { gate: "minSqnrDb", actual: null, limit: 20 },
    'has no measured figure for "Accuracy (SQNR)"; 20 dB are required',
  ],
  [
    { gate: "maxSizeRegression", actual: null, level: "warn", note: "There is no baseline" },
    'has no verdict on "Growth of the size" (There is no baseline)',
  ],
  [
    {
      gate: "maxLatencyRatio",
      actual: 1.02,
      limit: 1,
      interval: { low: 0.98, high: 1.06 },
      level: "warn",
      note: "The confidence interval contains the limit",
    },
    `could not be timed precisely enough to decide: it takes ×1.02 the original's time (95 % sure: ×0.98 to ×1.06); ×1.00 is allowed`,
  ],
];

for (const [gate, sentence] of sentences) {
  test(`a gate says "${sentence}"`, () => {
    assert.equal(describeGate(makeGate(gate), { against: "main" }), sentence);
  });
}

test("a figure beyond its limit never reads as the limit itself", () => {
  for (const gate of gateName.options) {
    for (const excess of [1e-2, 1e-4, 1e-6]) {
      const words = describeGate(makeGate({ gate, limit: 0.5, actual: 0.5 + excess }));
      const [found = "", allowed = ""] = words.split("; ");
      const [limit = ""] = allowed.split(" ");
      assert.ok(!found.split(" ").includes(limit), words);
    }
  }
});

const telemetry = { progress: { fraction: 1 }, warnings: [] };

test("every gate has a limit in words, and something to do where it fails", () => {
  for (const gate of gateName.options) {
    assert.match(describeLimit({ gate, limit: 0.5 }), /^[A-Z].+: at (most|least) \S+/);
    const failed = { status: "Completed" as const, error: null, gates: [makeGate({ gate })] };
    assert.match(nextStep({ ...failed, telemetry }) ?? "", /\.$/);
  }
});

test("what comes next follows from why a job did not pass", () => {
  const job = { status: "Failed" as const, gates: [], telemetry };
  const after = (code: "model_invalid" | "worker_crashed" | "internal_error") =>
    nextStep({ ...job, error: { code, message: "" } });
  assert.match(after("model_invalid") ?? "", /^Correct what the message names/);
  assert.match(after("worker_crashed") ?? "", /^Run it again/);
  assert.equal(nextStep({ status: "Completed", gates: [], error: null, telemetry }), undefined);
  const missing = { gate: "maxSqnrDropDb", actual: null, baseline: null, level: "warn" } as const;
  const withoutBaseline = makeGate(missing);
  const next = nextStep({ status: "Completed", error: null, gates: [withoutBaseline], telemetry });
  assert.match(next ?? "", /^Run the workflow once on the base branch/);
  const none = { added: 0, removed: 0, changed: 0, renamed: 0, same: 1 };
  const modelDiff = { values: [], nodes: none, weights: none, nodeChanges: [], weightChanges: [] };
  const worse = makeGate({ gate: "maxSqnrDropDb", actual: 4, limit: 3 });
  const sameModel = nextStep({
    status: "Completed",
    error: null,
    gates: [worse],
    telemetry: { ...telemetry, modelDiff },
  });
  assert.match(sameModel ?? "", /^The model is the same as the baseline's: look for a change/);
  const accuracy = {
    level: "outputs" as const,
    data: "generated" as const,
    samples: 8,
    sqnrDb: 9,
    cosine: 1,
    outputs: [],
  };
  const ruined = makeGate({ gate: "minSqnrDb", actual: 9, limit: 20 });
  const measured = { ...telemetry, accuracy };
  const samples = nextStep({
    status: "Completed",
    error: null,
    gates: [ruined],
    telemetry: measured,
  });
  assert.match(samples ?? "", /^Give real samples .* Quantize less of the model/);
  const undecided = (actual: number) => {
    const interval = { low: 0.96, high: 1.04 };
    const gate = makeGate({ gate: "maxLatencyRatio", limit: 1, actual, interval, level: "warn" });
    return nextStep({ status: "Completed", error: null, gates: [gate], telemetry }) ?? "";
  };
  assert.match(undecided(0.98), /latencyBudgetSeconds` to about 9 times its value/);
  assert.match(undecided(1.001), /measuring it longer decides nothing: set the limit/);
});
