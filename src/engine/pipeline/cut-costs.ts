import type { ValueDescription } from "./describe-values.ts";
import type { PipelineGraph } from "./pipeline-graph.ts";
import type { PipelineStep } from "./pipeline-step.ts";

type Values = ReadonlyMap<string, ValueDescription>;

/** Indices of the step that computes a value and of the last step that uses it. */
interface ValueLifetime {
  readonly computed: number;
  lastUsed: number;
}

export interface PlannedCut {
  readonly bytes: number;
  /** Values computed before the cut and used behind it, in the order in which they are computed. */
  readonly values: readonly string[];
}

/** Bytes across a cut before each step from the second on; infinite where a non-tensor crosses. */
export function computeCutCosts({ steps }: PipelineGraph, values: Values): number[] {
  const bytes = new Float64Array(steps.length + 1);
  const others = new Int32Array(steps.length + 1);
  for (const [name, { computed, lastUsed }] of valueLifetimes(steps)) {
    const value = values.get(name);
    const [changes, change] = value ? [bytes, value.sampleBytes] : [others, 1];
    changes[computed + 1] = (changes[computed + 1] ?? 0) + change;
    changes[lastUsed + 1] = (changes[lastUsed + 1] ?? 0) - change;
  }
  const costs: number[] = [];
  let [crossing, crossingOthers] = [0, 0];
  for (let position = 1; position < steps.length; position++) {
    crossing += bytes[position] ?? 0;
    crossingOthers += others[position] ?? 0;
    costs.push(crossingOthers > 0 ? Infinity : crossing);
  }
  return costs;
}

/** The cut before the step at `position`. */
export function describeCut(
  { steps }: PipelineGraph,
  values: Values,
  position: number,
): PlannedCut {
  const crossing = [...valueLifetimes(steps)]
    .filter(([, { computed, lastUsed }]) => computed < position && lastUsed >= position)
    .map(([name]) => name);
  const bytes = crossing.reduce((total, name) => total + (values.get(name)?.sampleBytes ?? 0), 0);
  return { bytes, values: crossing };
}

function valueLifetimes(steps: readonly PipelineStep[]): Map<string, ValueLifetime> {
  const byName = new Map<string, ValueLifetime>();
  for (const [index, { outputs, runtimeInputs }] of steps.entries()) {
    for (const name of outputs) byName.set(name, { computed: index, lastUsed: index });
    for (const name of runtimeInputs) {
      const lifetime = byName.get(name);
      if (lifetime) lifetime.lastUsed = index;
    }
  }
  return byName;
}
