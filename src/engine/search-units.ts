import { isSameFormat, type WrittenForm } from "./search-candidates.ts";
import { findOwnPatterns } from "./quantize/weight-patterns.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";

/** Weights that a search decides on together. */
export interface Unit {
  /** Pattern of the only weight; undefined for all that no other unit has. */
  readonly match: string | undefined;
  /** Positions of the weights. */
  readonly weights: readonly number[];
  /** What the weights can be; the first option is as they are, or a language model's first form. */
  readonly options: readonly UnitOption[];
}

interface UnitOption {
  /** The forms that make the same of all the weights; none where they stay as they are. */
  readonly forms: readonly WrittenForm[];
  readonly bytes: number;
}

/** Overrides of a recipe; the last one is for all other weights. */
const maxUnits = 200;

/** Each of the largest weights that a pattern can name is a unit of its own; the others are one. */
export function divideUnits(forms: readonly WrittenForm[], isLanguage: boolean): Unit[] {
  const [first] = forms;
  if (first === undefined) return [];
  const plans = first.plan.weights.filter(({ weight }) =>
    forms.some(({ plan }) => plan.weights[weight.index]?.format !== undefined),
  );
  const patterns = findOwnPatterns(first.plan.weights.map(({ weight }) => weight));
  const named = plans
    .filter(({ weight }) => patterns.has(weight.index))
    .toSorted((a, b) => b.weight.bytes - a.weight.bytes || a.weight.index - b.weight.index)
    .slice(0, maxUnits - 1);
  const own = new Set(named);
  const rest = plans.filter((plan) => !own.has(plan));
  return [
    ...named.map((plan) => describeUnit([plan], patterns.get(plan.weight.index), forms)),
    ...(rest.length === 0 ? [] : [describeUnit(rest, undefined, forms)]),
  ].map((unit) => (isLanguage ? { ...unit, options: unit.options.slice(1) } : unit));
}

function describeUnit(
  plans: readonly WeightPlan[],
  match: string | undefined,
  forms: readonly WrittenForm[],
): Unit {
  const weights = plans.map(({ weight }) => weight.index);
  const sumBytes = (form: WrittenForm | undefined) =>
    plans.reduce(
      (sum, { weight }) => sum + (form?.plan.weights[weight.index]?.format?.bytes ?? weight.bytes),
      0,
    );
  const isSame = (a: WrittenForm, b: WrittenForm) =>
    weights.every((weight) => isSameFormat(a, b, weight));
  const fitting = forms.filter(({ plan }) =>
    weights.some((weight) => plan.weights[weight]?.format !== undefined),
  );
  const different = fitting.filter(
    (form, index) => !fitting.slice(0, index).some((other) => isSame(form, other)),
  );
  const options = different.map((form) => ({
    forms: fitting.filter((other) => isSame(form, other)),
    bytes: sumBytes(form),
  }));
  return { match, weights, options: [{ forms: [], bytes: sumBytes(undefined) }, ...options] };
}
