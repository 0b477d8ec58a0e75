import type { CandidateRuns } from "./search-runs.ts";
import type { WrittenForm } from "./search-candidates.ts";
import type { Unit } from "./search-units.ts";
import type { Choice } from "./search/front.ts";

/** What the forms of each unit cost. */
export interface Sensitivity {
  /** Noise of each output, by unit and option; undefined where it is not known. */
  readonly noise: readonly (readonly (readonly number[] | undefined)[])[];
  /** The form in which each unit was measured; undefined where it was in all. */
  readonly measured: readonly (WrittenForm | undefined)[];
}

type OnProgress = (fraction: number, message: string) => void;

/** Measures what the forms of each unit cost, a unit at a time. */
export async function measureSensitivity(
  runs: CandidateRuns,
  onProgress: OnProgress,
): Promise<Sensitivity> {
  return runs.trials.isLanguage
    ? measureLanguageUnits(runs, onProgress)
    : measureUnits(runs, onProgress);
}

/** Runs the model with one unit at a time in one form at a time. */
async function measureUnits(runs: CandidateRuns, onProgress: OnProgress): Promise<Sensitivity> {
  const noise = runs.units.map(({ options }): (readonly number[] | undefined)[] =>
    options.map((_, option) => (option === 0 ? [] : undefined)),
  );
  const tasks = runs.units.flatMap((unit, index) =>
    unit.options.flatMap(({ forms: [form] }, option) =>
      form === undefined ? [] : [{ unit, index, option, form }],
    ),
  );
  let done = 0;
  await runs.forEach(tasks, async ({ unit, index, option, form }) => {
    const measured = await runs.measureUnit(unit, form);
    const ofUnit = noise[index];
    if (ofUnit !== undefined) ofUnit[option] = measured;
    done += 1;
    onProgress(done / tasks.length, `Measuring weights: ${done} of ${tasks.length}`);
  });
  return { noise, measured: runs.units.map(() => undefined) };
}

/** Share of the budget that measuring may take: with a part of the units known, the rest is guessed. */
const measuringShare = 0.7;

/**
 * Runs a language model with one unit at a time in 4 bits and all others in the most accurate form.
 * A unit's other forms cost in proportion to the noise that they have in the weights themselves:
 * the KL divergence is quadratic in small errors.
 */
async function measureLanguageUnits(
  runs: CandidateRuns,
  onProgress: OnProgress,
): Promise<Sensitivity> {
  const base = runs.chooseUniform(runs.mostAccurateForm);
  const [baseDivergence = 0] = await runs.measureNoise(base);
  const references = runs.units.map(findReference);
  const costs: (number | undefined)[] = references.map(() => undefined);
  let done = 0;
  const measure = async (index: number) => {
    const choice: Choice = base.map((option, unit) =>
      unit === index ? Number(references[index]?.option) : option,
    );
    const [divergence = 0] = await runs.measureNoise(choice);
    const noise = Number(references[index]?.noise);
    // Weights that are exact in 4 bits cost nothing in any form.
    costs[index] = noise === 0 ? 0 : Math.max(0, divergence - baseDivergence) / noise;
    done += 1;
    onProgress(done / references.length, `Measuring weights: ${done} of ${references.length}`);
  };
  await runs.forEach([...references.keys()], measure, measuringShare);
  const known = costs.filter((cost) => cost !== undefined);
  const usual = known.reduce((sum, cost) => sum + cost, 0) / Math.max(1, known.length);
  return {
    noise: runs.units.map((unit, index) => {
      const cost = costs[index] ?? usual;
      return unit.options.map(({ forms: [form] }) => [cost * sumWeightNoise(unit, form)]);
    }),
    measured: references.map(({ form }, index) => (costs[index] === undefined ? undefined : form)),
  };
}

/** The option of a unit that is measured: the first in 4 bits, else the last. */
function findReference(unit: Unit) {
  const found = unit.options.findIndex(({ forms }) => forms[0]?.form.scheme === "int4-weight");
  const option = found === -1 ? unit.options.length - 1 : found;
  const form = unit.options[option]?.forms[0];
  return { option, form, noise: sumWeightNoise(unit, form) };
}

function sumWeightNoise({ weights }: Unit, form: WrittenForm | undefined): number {
  return weights.reduce((sum, weight) => sum + (form?.weightNoise.get(weight) ?? 0), 0);
}
