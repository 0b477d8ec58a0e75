import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  balanceStages,
  findFewestStages,
  type BalanceProblem,
} from "../../../src/engine/pipeline/balance-stages.ts";
import { computeStageLoad } from "../../../src/engine/pipeline/stage-loads.ts";

/** Fraction by which loads may miss the best balance. */
const balanceTolerance = 0.05;

/** Every way to cut `steps` into `stages`, as first steps. */
function* cuttings(steps: number, stages: number, from = 0): Generator<number[]> {
  if (stages === 1) {
    yield [from];
    return;
  }
  for (let next = from + 1; next <= steps - stages + 1; next++) {
    for (const rest of cuttings(steps, stages - 1, next)) yield [from, ...rest];
  }
}

function measure({ balanced, limited, cutCosts }: BalanceProblem, starts: readonly number[]) {
  const steps = balanced.stepLoads.length;
  const loads = starts.map((start, index) =>
    computeStageLoad(balanced, start, starts[index + 1] ?? steps),
  );
  const others = limited
    ? starts.map((start, index) =>
        computeStageLoad(limited.loads, start, starts[index + 1] ?? steps),
      )
    : [];
  return {
    isAllowed: others.every((load) => load <= (limited?.limit ?? Infinity)),
    largest: Math.max(...loads),
    smallest: Math.min(...loads),
    cost: starts.slice(1).reduce((total, start) => total + (cutCosts[start - 1] ?? 0), 0),
  };
}

/** The three goals by looking at every cutting. */
function bestCost(problem: BalanceProblem, stages: number): number | undefined {
  const steps = problem.balanced.stepLoads.length;
  const all = [...cuttings(steps, stages)]
    .map((starts) => measure(problem, starts))
    .filter(({ isAllowed, cost }) => isAllowed && Number.isFinite(cost));
  if (all.length === 0) return undefined;
  const mean = computeStageLoad(problem.balanced, 0, steps) / stages;
  const limit = Math.max(
    Math.min(...all.map(({ largest }) => largest)),
    Math.floor(mean * (1 + balanceTolerance)),
  );
  const balanced = all.filter(({ largest }) => largest <= limit);
  const floor = Math.max(...balanced.map(({ smallest }) => smallest));
  const alike = balanced.filter(
    ({ smallest }) => smallest >= Math.floor(floor * (1 - balanceTolerance)),
  );
  return Math.min(...alike.map(({ cost }) => cost));
}

const loads = fc.integer({ min: 2, max: 9 }).chain((steps) =>
  fc.record({
    stepLoads: fc.array(fc.nat(50), { minLength: steps, maxLength: steps }),
    stepParameters: fc.array(fc.uniqueArray(fc.nat(3), { maxLength: 2 }), {
      minLength: steps,
      maxLength: steps,
    }),
    parameterLoads: fc.array(fc.nat(100), { minLength: 4, maxLength: 4 }),
  }),
);

const problems = loads.chain((balanced) => {
  const steps = balanced.stepLoads.length;
  const sameSteps = { minLength: steps, maxLength: steps };
  return fc.record({
    balanced: fc.constant(balanced),
    cutCosts: fc.array(
      fc.oneof(
        { weight: 6, arbitrary: fc.nat(9) },
        { weight: 1, arbitrary: fc.constant(Infinity) },
      ),
      {
        minLength: steps - 1,
        maxLength: steps - 1,
      },
    ),
    limited: fc.option(
      fc.record({
        loads: fc.record({
          stepLoads: fc.array(fc.nat(50), sameSteps),
          stepParameters: fc.array(fc.uniqueArray(fc.nat(1)), sameSteps),
          parameterLoads: fc.array(fc.nat(50), { minLength: 2, maxLength: 2 }),
        }),
        limit: fc.integer({ min: 50, max: 400 }),
      }),
      { nil: undefined },
    ),
  });
});

test("balanceStages() finds what looking at every cutting finds", () => {
  fc.assert(
    fc.property(problems, fc.integer({ min: 1, max: 5 }), (problem, stages) => {
      const starts = balanceStages(problem, stages);
      const expected = bestCost(problem, stages);
      assert.equal(starts && measure(problem, starts).cost, expected);
      if (!starts) return;
      assert.equal(starts.length, stages);
      assert.ok(measure(problem, starts).isAllowed);
    }),
    { numRuns: 2000 },
  );
});

test("balanceStages() gives stages whose loads no other cutting makes more alike", () => {
  const free = problems.map((problem) => ({
    ...problem,
    cutCosts: problem.cutCosts.map(() => 0),
    limited: undefined,
  }));
  fc.assert(
    fc.property(free, fc.integer({ min: 1, max: 4 }), (problem, stages) => {
      const starts = balanceStages(problem, stages);
      if (!starts) return;
      const steps = problem.balanced.stepLoads.length;
      const least = Math.min(
        ...[...cuttings(steps, stages)].map((other) => measure(problem, other).largest),
      );
      const mean = computeStageLoad(problem.balanced, 0, steps) / stages;
      assert.ok(measure(problem, starts).largest <= Math.max(least, mean * (1 + balanceTolerance)));
    }),
  );
});

test("fewestStages() is the least number with which every stage meets the limit", () => {
  fc.assert(
    fc.property(problems, (problem) => {
      const steps = problem.balanced.stepLoads.length;
      const least = Array.from({ length: steps }, (_, index) => index + 1).find((stages) =>
        [...cuttings(steps, stages)].some((starts) => {
          const { isAllowed, cost } = measure(problem, starts);
          return isAllowed && Number.isFinite(cost);
        }),
      );
      assert.equal(findFewestStages(problem), least);
    }),
    { numRuns: 1000 },
  );
});

test("balanceStages() cuts 50,000 steps into 64 stages", () => {
  const stepLoads = Array.from({ length: 50_000 }, (_, index) => (index * 7919) % 1000);
  const balanced = { stepLoads, stepParameters: stepLoads.map(() => []), parameterLoads: [] };
  const starts = balanceStages({ balanced, cutCosts: stepLoads.slice(1) }, 64);
  assert.equal(starts?.length, 64);
});
