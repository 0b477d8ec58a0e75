import type { Telemetry } from "../../src/contract/jobs/telemetry.ts";
import { evaluateModels } from "../../src/engine/evaluate-models.ts";

interface Options {
  readonly originalPath: string;
  readonly resultPath: string;
  /** An `.npz` file; without it, samples are generated. */
  readonly dataPath?: string | undefined;
  /** Samples, at most. */
  readonly samples: number;
  readonly scratchDirectory: string;
}

/** What a job reports of a result, untimed; however inaccurate it is. */
export async function evaluateResult({
  samples,
  ...options
}: Options): Promise<Partial<Telemetry>> {
  const measured: Partial<Telemetry> & { warnings: Telemetry["warnings"] } = { warnings: [] };
  await evaluateModels({
    ...options,
    evaluation: { samples, latencyBudgetSeconds: 0, minCosine: -1 },
    executionProvider: "cpu",
    signal: new AbortController().signal,
    onProgress: () => undefined,
    log: () => undefined,
    onMeasured: ({ warnings = [], ...figures }) => {
      Object.assign(measured, figures);
      measured.warnings.push(...warnings);
    },
  });
  return measured;
}
