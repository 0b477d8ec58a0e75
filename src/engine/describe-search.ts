import type { CandidateRuns, VerifiedPoint } from "./search-runs.ts";
import { describeForm } from "./search/forms.ts";
import { noiseToDb } from "./search/prediction.ts";
import { type Auto, listMissedGoals } from "../contract/jobs/auto.ts";
import type { Recipe } from "../contract/jobs/recipe.ts";
import {
  maxSearchPoints,
  maxSensitiveWeights,
  type SearchPoint,
  type SearchSummary,
} from "../contract/jobs/search.ts";
import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/text/bounded-text.ts";
import { replaceHiddenCharacters } from "../contract/text/hidden-characters.ts";

export interface FoundRecipe {
  /** The ordinary recipe that was found. */
  readonly recipe: Recipe;
  readonly summary: SearchSummary;
  /** SQNR of the worst output where only one weight has a form, dB, by the weight's position. */
  readonly sensitivities: ReadonlyMap<number, Readonly<Record<string, number>>>;
}

/** Noise of each output, by unit and option; undefined where it was not measured. */
type MeasuredNoise = readonly (readonly (readonly number[] | undefined)[])[];

/** Picks the best of all candidates that were run, and says what is known of all. */
export async function describeSearch(
  runs: CandidateRuns,
  noise: MeasuredNoise,
  auto: Auto,
): Promise<FoundRecipe> {
  const verified = await runs.listVerified();
  const best = pickBest(verified, auto);
  const missed = listMissedGoals(auto, best.figures);
  const { data, samples, evaluationSamples } = runs.trials;
  const sensitivities = listSensitivities(runs, noise);
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

/** The best that reaches the goals, else the nearest. */
function pickBest(verified: readonly VerifiedPoint[], auto: Auto): VerifiedPoint {
  const { minimize, maxBytes = Infinity } = auto;
  const bytes = ({ figures }: VerifiedPoint) => figures.bytes;
  const loss = ({ figures }: VerifiedPoint) => -figures.sqnrDb;
  const isReached = (point: VerifiedPoint) => point.marginDb >= 0 && bytes(point) <= maxBytes;
  const [first, second] = minimize === "bytes" ? [bytes, loss] : [loss, bytes];
  const reached = verified.filter(isReached);
  const [best] = reached.toSorted((a, b) => first(a) - first(b) || second(a) - second(b));
  const [nearest] = verified.toSorted((a, b) =>
    minimize === "bytes"
      ? b.marginDb - a.marginDb || bytes(a) - bytes(b)
      : bytes(a) - bytes(b) || loss(a) - loss(b),
  );
  const picked = best ?? nearest;
  if (picked === undefined) throw new TypeError("A search ended without a candidate");
  return picked;
}

function describePoint(
  { choice, predictedSqnrDb, figures }: VerifiedPoint,
  runs: CandidateRuns,
): Omit<SearchPoint, "chosen"> {
  const form = runs.forms.find((each) => runs.chooseUniform(each).join() === choice.join());
  return {
    ...figures,
    ...(predictedSqnrDb !== undefined && { predictedSqnrDb }),
    ...(form !== undefined && { form: describeForm(form.form) }),
  };
}

function listSensitivities(runs: CandidateRuns, noise: MeasuredNoise) {
  const sensitivities = new Map<number, Record<string, number>>();
  for (const [index, { match, weights, options }] of runs.units.entries()) {
    const [weight] = weights;
    if (weight === undefined || match === undefined) continue;
    const found: Record<string, number> = {};
    for (const [option, { forms }] of options.entries()) {
      const measured = noise[index]?.[option];
      const [form] = forms;
      if (form !== undefined && measured !== undefined) {
        found[describeForm(form.form)] = noiseToDb(measured);
      }
    }
    sensitivities.set(weight, found);
  }
  return sensitivities;
}

/** By the first form that each can have. */
function listMostSensitive(
  { forms }: CandidateRuns,
  sensitivities: FoundRecipe["sensitivities"],
): SearchSummary["mostSensitive"] {
  const weights = forms[0]?.plan.weights;
  return [...sensitivities]
    .flatMap(([weight, found]) => {
      const [first] = Object.entries(found);
      const name = weights?.[weight]?.weight.name;
      if (first === undefined || name === undefined) return [];
      const shown = truncate(replaceHiddenCharacters(name), textLimits.name);
      return [{ name: shown, form: first[0], sqnrDb: first[1] }];
    })
    .toSorted((a, b) => a.sqnrDb - b.sqnrDb)
    .slice(0, maxSensitiveWeights);
}
