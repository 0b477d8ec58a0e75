import type { CandidateRuns, VerifiedPoint } from "./search-runs.ts";
import type { Sensitivity } from "./search-sensitivity.ts";
import { describeForm } from "./search/forms.ts";
import { dbToNoise, noiseToDb } from "./search/prediction.ts";
import { type Auto, listMissedGoals } from "../contract/jobs/auto.ts";
import { maxRatio } from "../contract/jobs/latency.ts";
import type { Recipe } from "../contract/jobs/recipe.ts";
import {
  maxSearchPoints,
  maxSensitiveWeights,
  type SearchPoint,
  type SearchSummary,
} from "../contract/jobs/search.ts";
import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/text/truncate.ts";
import { replaceHiddenCharacters } from "../contract/text/hidden-characters.ts";

/** What the forms of a weight cost, as a search measured it. */
export interface WeightSensitivity {
  /** SQNR of the worst output where only this weight had a form, dB. */
  readonly outputSqnrDb?: Readonly<Record<string, number>>;
  /** The same of a language model: KL divergence that a form adds where all others have 8 bits. */
  readonly outputKlDivergence?: Readonly<Record<string, number>>;
}

export interface FoundRecipe {
  /** The ordinary recipe that was found. */
  readonly recipe: Recipe;
  readonly summary: SearchSummary;
  /** What each weight costs, by its position. */
  readonly sensitivities: ReadonlyMap<number, WeightSensitivity>;
}

/** Picks the best of all candidates that were run, and says what is known of all. */
export async function describeSearch(
  runs: CandidateRuns,
  sensitivity: Sensitivity,
  auto: Auto,
): Promise<FoundRecipe> {
  const verified = await runs.listVerified();
  const best = pickBest(verified, auto);
  const missed = listMissedGoals(auto, best.figures);
  const { data, samples, evaluationSamples } = runs.trials;
  const sensitivities = listSensitivities(runs, sensitivity);
  const summary = {
    reached: missed.length === 0,
    missed,
    outOfBudget: runs.isOver,
    data,
    samples,
    ...(evaluationSamples !== undefined && { evaluationSamples }),
    candidates: runs.count,
    seconds: runs.seconds,
    points: verified
      .toSorted((a, b) => a.figures.bytes - b.figures.bytes)
      .slice(0, maxSearchPoints)
      .map((point) => ({ ...describePoint(point, runs), chosen: point === best })),
    mostSensitive: listMostSensitive(runs, sensitivities),
  };
  return { recipe: best.recipe, summary, sensitivities };
}

/**
 * The best point that reaches both goals. Where none does: the smallest that is accurate enough if
 * bytes are minimized, the most accurate that is small enough if the loss is; else the nearest.
 */
function pickBest(verified: readonly VerifiedPoint[], auto: Auto): VerifiedPoint {
  const { minimize, maxBytes = Infinity } = auto;
  const bytes = ({ figures }: VerifiedPoint) => figures.bytes;
  const loss = ({ lossDb }: VerifiedPoint) => -lossDb;
  const miss = ({ marginDb }: VerifiedPoint) => -marginDb;
  const accurate = verified.filter(({ marginDb }) => marginDb >= 0);
  const small = verified.filter((point) => bytes(point) <= maxBytes);
  const both = small.filter((point) => accurate.includes(point));
  const picked =
    minimize === "bytes"
      ? // The least of them is small too where any is.
        (findLeast(accurate, bytes, loss) ?? findLeast(verified, miss, bytes))
      : (findLeast(both, loss, bytes) ??
        findLeast(small, loss, bytes) ??
        findLeast(verified, bytes, loss));
  if (picked === undefined) throw new TypeError("A search ended without a candidate");
  return picked;
}

type Figure = (point: VerifiedPoint) => number;

/** The point with the least figure; of several, that with the least other one. */
function findLeast(
  points: readonly VerifiedPoint[],
  first: Figure,
  second: Figure,
): VerifiedPoint | undefined {
  const [least] = points.toSorted((a, b) => first(a) - first(b) || second(a) - second(b));
  return least;
}

function describePoint(
  { choice, predictedDb, figures }: VerifiedPoint,
  runs: CandidateRuns,
): Omit<SearchPoint, "chosen"> {
  const form = runs.forms.find((each) => runs.chooseUniform(each).join() === choice.join());
  return {
    ...figures,
    ...(predictedDb !== undefined &&
      (runs.trials.isLanguage
        ? { predictedKlDivergence: Math.min(maxRatio, dbToNoise(predictedDb)) }
        : { predictedSqnrDb: predictedDb })),
    ...(form !== undefined && { form: describeForm(form.form) }),
  };
}

function listSensitivities(
  { units, trials }: CandidateRuns,
  { noise, measured }: Sensitivity,
): FoundRecipe["sensitivities"] {
  const sensitivities = new Map<number, WeightSensitivity>();
  for (const [index, { match, weights, options }] of units.entries()) {
    const [weight] = weights;
    if (weight === undefined || match === undefined) continue;
    const found: Record<string, number> = {};
    for (const [option, { forms }] of options.entries()) {
      const ofForm = noise[index]?.[option];
      const [form] = forms;
      if (form === undefined || ofForm === undefined) continue;
      if (trials.isLanguage && form !== measured[index]) continue;
      found[describeForm(form.form)] = trials.isLanguage ? Number(ofForm[0]) : noiseToDb(ofForm);
    }
    const sensitivity = trials.isLanguage ? { outputKlDivergence: found } : { outputSqnrDb: found };
    sensitivities.set(weight, sensitivity);
  }
  return sensitivities;
}

/** By the first form in which each was measured. */
function listMostSensitive(
  { forms, trials }: CandidateRuns,
  sensitivities: FoundRecipe["sensitivities"],
): SearchSummary["mostSensitive"] {
  const weights = forms[0]?.plan.weights;
  const measured = [...sensitivities].flatMap(([weight, found]) => {
    const [first] = Object.entries(found.outputKlDivergence ?? found.outputSqnrDb ?? {});
    const name = weights?.[weight]?.weight.name;
    if (first === undefined || name === undefined) return [];
    const [form, figure] = first;
    return [{ name: truncate(replaceHiddenCharacters(name), textLimits.name), form, figure }];
  });
  return measured
    .toSorted((a, b) => (trials.isLanguage ? b.figure - a.figure : a.figure - b.figure))
    .slice(0, maxSensitiveWeights)
    .map(({ figure, ...weight }) =>
      trials.isLanguage ? { ...weight, klDivergence: figure } : { ...weight, sqnrDb: figure },
    );
}
