import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import type { CandidateOptions } from "./search-candidates.ts";
import { CandidateRuns } from "./search-runs.ts";
import { describeSearch, type FoundRecipe } from "./describe-search.ts";
import { measureSensitivity } from "./search-sensitivity.ts";
import { type Choice, Front } from "./search/front.ts";
import { dbToNoise, noiseToDb, Prediction } from "./search/prediction.ts";
import type { Auto } from "../contract/jobs/auto.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";

/** Fractions of the work after each of its steps. */
const steps = { forms: 0.1, weights: 0.7, goal: 0.85 };
/** Most candidates that are run to reach the goal. */
const maxTries = 10;
/** The range of SQNR that results can have, dB. */
const range = { low: -20, high: 150 };
/** Narrower intervals of the predicted SQNR have nothing in between, dB. */
const narrowestDb = 0.1;
/** Candidates whose loss corrects the predictions. */
const anchors = 5;

/**
 * Searches the form of each weight for the recipe's goal. What each weight costs in each form is
 * measured once; the front of size and loss is predicted from that, and its points are run on the
 * evaluation's samples, which the measurements do not use. Candidates run on one thread each, so
 * that the recipe does not depend on the machine's processors.
 * @throws ServiceError those of CandidateRuns.open
 */
export async function searchRecipe(options: CandidateOptions, auto: Auto): Promise<FoundRecipe> {
  const { log, onProgress } = options;
  const scratch = path.join(options.scratch, "search");
  await mkdir(scratch);
  try {
    await using runs = await CandidateRuns.open({ ...options, scratch }, auto);
    onProgress(steps.forms, "Running each form");
    // However soon the budget ends, there is a result.
    await runs.verify(runs.chooseUniform(runs.mostAccurateForm));
    await runs.forEach(runs.forms, async (form) => runs.verify(runs.chooseUniform(form)));
    const onMeasured = (fraction: number, message: string) =>
      onProgress(steps.forms + fraction * (steps.weights - steps.forms), message);
    const sensitivity = await measureSensitivity(runs, onMeasured);
    const front = new Front(
      runs.units.map((unit, index) =>
        unit.options.map(({ bytes }, option) => ({
          bytes,
          noise: sensitivity.noise[index]?.[option],
        })),
      ),
    );
    onProgress(steps.weights, "Searching");
    const search = { runs, auto, front, prediction: new Prediction(front) };
    await runs.forEach(spread(front.length, anchors), async (count) => {
      const choice = front.takeMoves(count);
      search.prediction.addAnchor(choice, noiseToDb(await runs.measureNoise(choice)));
    });
    await (auto.minimize === "loss" ? reachSize(search) : reachAccuracy(search));
    onProgress(steps.goal, "Verifying the front");
    const points = spread(front.length, auto.points).map((count) => front.takeMoves(count));
    await runs.forEach(points, async (choice) => tryChoice(search, choice));
    const found = await describeSearch(runs, sensitivity, auto);
    log(describeEnd(found));
    return found;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

interface RunningSearch {
  readonly runs: CandidateRuns;
  readonly auto: Auto;
  readonly front: Front;
  readonly prediction: Prediction;
}

/** @returns undefined for a choice that changes nothing, which is no result */
async function tryChoice({ runs, prediction }: RunningSearch, choice: Choice) {
  const isUnchanged = choice.every((option, unit) => {
    return runs.units[unit]?.options[option]?.forms.length === 0;
  });
  if (isUnchanged) return undefined;
  return runs.verify(choice, prediction.predict(choice));
}

/** Halves the interval of the predicted loss, with what was missed as the next guess. */
async function reachAccuracy(search: RunningSearch): Promise<void> {
  const { runs, auto, front } = search;
  const { minSqnrDb, maxPerplexityRatio = 1, maxKlDivergence } = auto;
  let { low, high } = range;
  const nats = maxKlDivergence ?? Math.log(maxPerplexityRatio);
  let next = nats > 0 ? noiseToDb([nats]) : (minSqnrDb ?? (low + high) / 4);
  for (let tries = 0; tries < maxTries && high - low > narrowestDb; tries++) {
    if (runs.isOver) return;
    const point = await tryChoice(search, front.chooseWithin(dbToNoise(next)));
    const margin = point?.marginDb ?? Infinity;
    if (margin >= 0 && margin < narrowestDb) return;
    if (margin >= 0) high = next;
    else low = next;
    const guess = next - margin + narrowestDb / 2;
    next = guess > low && guess < high ? guess : (low + high) / 2;
  }
}

/** Sizes are known without a run, but for a few bytes of the graph. */
async function reachSize(search: RunningSearch): Promise<void> {
  const { runs, auto, front } = search;
  const { maxBytes = 0 } = auto;
  const [uniform] = await runs.listVerified();
  if (uniform === undefined) return;
  const graphBytes = uniform.figures.bytes - front.sumBytes(uniform.choice);
  let room = maxBytes - graphBytes;
  for (let tries = 0; tries < maxTries && !runs.isOver; tries++) {
    const point = await tryChoice(search, front.chooseBytes(room));
    if (point === undefined || point.figures.bytes <= maxBytes) return;
    room -= point.figures.bytes - maxBytes;
  }
}

/** So many numbers from the length down to 1, about equally far from each other. */
function spread(length: number, count: number): number[] {
  if (length === 0) return [];
  const numbers = Array.from({ length: count }, (_, index) =>
    Math.max(1, Math.round(length * (1 - index / count))),
  );
  return [...new Set(numbers)];
}

function describeEnd({ summary }: FoundRecipe): string {
  const { points, reached, missed, candidates, seconds } = summary;
  const chosen = points.find((each) => each.chosen);
  const goal = reached ? "reaches the goal" : `misses the goal: ${missed.join("; ")}`;
  const accuracy =
    chosen?.perplexityRatio === undefined
      ? `SQNR ${chosen?.sqnrDb.toFixed(2)} dB`
      : `perplexity ${chosen.perplexityRatio.toFixed(3)} of the original's`;
  const result = `${formatBytes(chosen?.bytes ?? 0)}, ${accuracy}`;
  return `Search: ${candidates} candidates in ${seconds.toFixed(0)} s; ${result} ${goal}`;
}
