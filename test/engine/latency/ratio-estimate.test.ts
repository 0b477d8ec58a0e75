import assert from "node:assert/strict";
import test from "node:test";
import {
  criticalT,
  estimateRatio,
  relativeHalfWidth,
} from "../../../src/engine/latency/ratio-estimate.ts";
import {
  areNarrow,
  areNoisy,
  estimateShapes,
} from "../../../src/engine/latency/interim-analysis.ts";
import { createNormal, createRandom } from "../../../src/engine/samples/generate-sample.ts";

const criticalValues: readonly [errorRate: number, degrees: number, value: number][] = [
  [0.05, 1, 12.7062],
  [0.05, 2, 4.3027],
  [0.05, 3, 3.1824],
  [0.05, 4, 2.7764],
  [0.01, 3, 5.8409],
  [0.01, 9, 3.2498],
  [0.05, 30, 2.0423],
  [0.01, 120, 2.6174],
];
for (const [errorRate, degrees, value] of criticalValues) {
  test(`criticalT() is ${value} for ${errorRate} and ${degrees} degrees of freedom`, () => {
    assert.equal(criticalT(errorRate, degrees).toFixed(4), value.toFixed(4));
  });
}

test("estimateRatio() gives the t-interval of the mean logarithm", () => {
  const { ratio, low, high, sessions } = estimateRatio([0.05, 0.1, 0.15], 0.05);
  const halfWidth = (4.3027 * 0.05) / Math.sqrt(3);
  assert.equal(sessions, 3);
  assert.ok(Math.abs(Math.log(ratio) - 0.1) < 1e-12);
  assert.ok(Math.abs(Math.log(low) - (0.1 - halfWidth)) < 1e-5);
  assert.ok(Math.abs(Math.log(high) - (0.1 + halfWidth)) < 1e-5);
});

test("estimateRatio() takes few sessions that agree for chance", () => {
  assert.ok(relativeHalfWidth(estimateRatio([0.02, 0.02], 0.01)) > 0.1);
  assert.ok(relativeHalfWidth(estimateRatio([0.02, 0.02, 0.02, 0.02], 0.01)) < 0.0125);
});

test("estimateRatio() gives numbers whatever the sessions differ by", () => {
  const { low, high } = estimateRatio([0, 1000], 0.01);
  assert.ok(low >= 0 && Number.isFinite(high));
});

test("estimateShapes() makes each interval wider where there are several shapes", () => {
  const logRatios = [0.01, -0.01, 0.02, 0];
  const [alone] = estimateShapes([logRatios]);
  const [shared] = estimateShapes([logRatios, logRatios]);
  assert.ok(alone && shared && shared.high > alone.high && shared.low < alone.low);
});

/** Ends at the first look that shows a narrow interval, as a measurement does. */
function simulate(drawRound: () => number, maxRounds: number) {
  const logRatios: number[] = [];
  for (;;) {
    logRatios.push(drawRound());
    const isLast = logRatios.length === maxRounds;
    if (!isLast && ![4, 8, 12, 20, 32].includes(logRatios.length)) continue;
    const intervals = estimateShapes([logRatios]);
    if (isLast || areNarrow(intervals)) return intervals;
  }
}

for (const maxRounds of [3, 10, 32]) {
  test(`intervals contain the ratio of equal models in 95 % of measurements of ${maxRounds} rounds at most`, () => {
    const normal = createNormal(createRandom(maxRounds));
    const trials = 2000;
    let missed = 0;
    let far = 0;
    for (let trial = 0; trial < trials; trial++) {
      // Two sessions differ by 1.5 % each; of the runs remains a heavy-tailed rest.
      const [interval] = simulate(
        () =>
          0.015 * (normal() + normal()) + (0.003 * normal()) / Math.max(0.2, Math.abs(normal())),
        maxRounds,
      );
      assert.ok(interval);
      if (interval.low > 1 || interval.high < 1) missed += 1;
      if (!areNoisy([interval]) && (interval.low < 0.97 || interval.high > 1.03)) far += 1;
    }
    assert.ok(missed / trials < 0.05, `${missed} missed`);
    assert.ok(far / trials < 0.01, `${far} far off`);
  });
}
