import { spawn } from "node:child_process";
import { once } from "node:events";
import { evaluateGates } from "../src/contract/jobs/evaluate-gates.ts";
import { defaultRecipe } from "../src/contract/jobs/resolve-recipe.ts";
import { comparableOutputs } from "../src/engine/evaluate/output-comparison.ts";
import { createRandom, runOnGeneratedSample } from "../src/engine/samples/generate-sample.ts";
import {
  areNarrow,
  estimateShapes,
  isInterimAnalysis,
  isUndecided,
  maxRounds,
} from "../src/engine/latency/interim-analysis.ts";
import { measureRound, type Order } from "../src/engine/latency/latency-round.ts";
import { ModelSession } from "../src/engine/runtime/model-session.ts";
import { RuntimeProcess } from "../src/engine/runtime/runtime-process.ts";
import { realModel } from "../test/support/real-models.ts";
import { limitRow, reportBench } from "./result.ts";

/**
 * A latency gate on pairs of models that are equal, and on pairs of which one is slower. Sessions of
 * a real model against itself, beside a process that keeps a core busy, are measured once; each
 * pair draws from them, so that thousands of pairs have the noise of this machine.
 */
const measuredSessions = Number(process.argv[3] ?? 200);
const limit = 0.02;
const equalPairs = 1_000;
const slowedPairs = 200;
const threads = 1;
const timedMs = 150;
const { signal } = new AbortController();
const path = realModel("voice-v5");

interface Sessions {
  readonly logRatios: readonly number[];
  /** Rounds that the default budget has time for. */
  readonly rounds: number;
}

async function measureSessions(): Promise<Sessions> {
  const options = { executionProvider: "cpu", threads, signal } as const;
  await using session = await ModelSession.open(path, options);
  const outputs = comparableOutputs(session).names;
  const { sample } = await runOnGeneratedSample(session, { outputs, signal });
  await using runtime = new RuntimeProcess(signal);
  await runtime.request({ do: "feed", feed: "0", inputs: [...sample] }, "fed");
  const logRatios: number[] = [];
  const orders: readonly Order[] = [
    ["original", "result"],
    ["result", "original"],
  ];
  const started = performance.now();
  while (logRatios.length < measuredSessions) {
    for (const order of orders) {
      const paths = { original: path, result: path };
      const round = { process: runtime, paths, feeds: ["0"], order, timedMs, ...options };
      const [times] = await measureRound(round);
      if (times) logRatios.push(times.logRatio);
    }
  }
  const roundSeconds = (performance.now() - started) / 1000 / logRatios.length;
  const budget = defaultRecipe.evaluation.latencyBudgetSeconds;
  return { logRatios, rounds: Math.min(maxRounds, Math.floor(budget / roundSeconds)) };
}

type Verdict = "passed" | "failed" | "not decided";

/** What the gate says of a pair whose second model is slower by a share. */
function decide({ logRatios, rounds }: Sessions, slower: number, random: () => number): Verdict {
  const drawn: number[] = [];
  for (;;) {
    const session = logRatios[Math.floor(random() * logRatios.length)] ?? 0;
    drawn.push(session + Math.log1p(slower));
    const isLast = drawn.length >= rounds;
    if (!isLast && !isInterimAnalysis(drawn.length)) continue;
    const [interval] = estimateShapes([drawn]);
    if (interval === undefined) throw new TypeError("One input shape has one interval");
    const isKnown = areNarrow([interval]) && !isUndecided(interval, 1 + limit);
    if (!isLast && !isKnown) continue;
    const { ratio, low: ratioLow, high: ratioHigh, sessions } = interval;
    const times = { p50Ms: 1, runs: sessions };
    const baseline = { ratio, ratioLow, ratioHigh, sessions };
    const latency = { original: times, result: times, ratio: 1, baseline };
    const telemetry = { progress: { fraction: 1 }, warnings: [], latency };
    const [gate] = evaluateGates({ maxLatencyRegression: limit }, telemetry, null);
    if (gate?.passed) return "passed";
    return gate?.level === "fail" ? "failed" : "not decided";
  }
}

function countVerdicts(sessions: Sessions, slower: number, pairs: number) {
  const random = createRandom(Math.round(slower * 1000) + 1);
  const verdicts = Array.from({ length: pairs }, () => decide(sessions, slower, random));
  const share = (verdict: Verdict) =>
    (100 * verdicts.filter((each) => each === verdict).length) / pairs;
  return { passed: share("passed"), failed: share("failed"), open: share("not decided") };
}

const busy = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
try {
  await once(busy, "spawn");
  const sessions = await measureSessions();
  const equal = countVerdicts(sessions, 0, equalPairs);
  const [by5, by3] = [0.05, 0.03].map((share) => countVerdicts(sessions, share, slowedPairs));
  const row = { unit: "%", peer: null, bar: "none", met: null };
  await reportBench("gate", [
    limitRow(`${equalPairs} equal pairs, limit ${100 * limit} %: failed`, "%", equal.failed, 1),
    { ...row, what: "equal pairs: passed", ours: equal.passed },
    { ...row, what: "equal pairs: not decided", ours: equal.open },
    {
      ...row,
      what: `${slowedPairs} pairs slowed by 5 %: failed`,
      ours: by5?.failed ?? 0,
      bar: ">= 95",
      met: (by5?.failed ?? 0) >= 95,
    },
    limitRow("pairs slowed by 5 %: passed", "%", by5?.passed ?? 100, 0),
    { ...row, what: "pairs slowed by 3 %: failed", ours: by3?.failed ?? 0 },
    limitRow("pairs slowed by 3 %: passed", "%", by3?.passed ?? 100, 1),
    { ...row, what: "rounds within the default budget", unit: "rounds", ours: sessions.rounds },
  ]);
} finally {
  busy.kill();
}
