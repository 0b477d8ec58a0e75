import type { PipelineStep } from "./pipeline-step.ts";

interface Place {
  readonly step: PipelineStep;
  /** Whether the step uses nothing but parameters and what other such steps compute. */
  readonly isLate: boolean;
  readonly index: number;
  /** The step to be placed before. */
  at: number;
}

/**
 * Moves each step that works on parameters alone, such as one that dequantizes a weight, to just
 * before the first step that uses its outputs, so that a weight and its use are on the same side of
 * a cut.
 */
export function deferParameterSteps(steps: readonly PipelineStep[]): PipelineStep[] {
  const places = createPlaces(steps);
  placeBeforeFirstUses(places);
  return places
    .toSorted((a, b) => a.at - b.at || Number(b.isLate) - Number(a.isLate) || a.index - b.index)
    .map(({ step }) => step);
}

function createPlaces(steps: readonly PipelineStep[]): Place[] {
  const lateValues = new Set<string>();
  return steps.map((step, index) => {
    const isLate = step.runtimeInputs.every((name) => lateValues.has(name));
    if (isLate) for (const name of step.outputs) lateValues.add(name);
    return { step, isLate, index, at: index };
  });
}

function placeBeforeFirstUses(places: readonly Place[]): void {
  const firstUses = new Map<string, number>();
  const firstUse = (name: string) => firstUses.get(name) ?? places.length;
  for (const place of places.toReversed()) {
    const { outputs, runtimeInputs } = place.step;
    if (place.isLate) {
      place.at = outputs.reduce((first, name) => Math.min(first, firstUse(name)), Infinity);
    }
    for (const name of runtimeInputs) firstUses.set(name, Math.min(place.at, firstUse(name)));
  }
}
