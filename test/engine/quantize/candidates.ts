import { createCandidateRunner } from "../../../src/engine/candidate-runner.ts";
import type { CandidateRunner } from "../../../src/engine/candidate.ts";

const intervals = {
  faster: { ratio: 0.6, low: 0.58, high: 0.62, secondsPerRound: 0 },
  slower: { ratio: 1.2, low: 1.18, high: 1.22, secondsPerRound: 0 },
} as const;

/** Times nothing, and says that every candidate has one latency. */
export function fixedCandidates(
  latency: keyof typeof intervals,
  measureSqnrDb: CandidateRunner["measureSqnrDb"] = () => Promise.resolve(40),
): CandidateRunner {
  return { budgetSeconds: 1, time: () => Promise.resolve(intervals[latency]), measureSqnrDb };
}

/** Runs results beside their original on generated samples. */
export function createRunner(originalPath: string): CandidateRunner {
  return createCandidateRunner({
    originalPath,
    evaluation: { samples: 2, latencyBudgetSeconds: 0 },
    executionProvider: "cpu",
    instructionSets: undefined,
    signal: new AbortController().signal,
    onProgress: () => {},
    log: () => {},
  });
}

/** SQNR of a result's worst output on generated samples, dB. */
export async function measureSqnrDb(originalPath: string, resultPath: string): Promise<number> {
  const sqnrDb = await createRunner(originalPath).measureSqnrDb(resultPath);
  if (sqnrDb === undefined) throw new Error(`${resultPath} cannot be run`);
  return sqnrDb;
}
