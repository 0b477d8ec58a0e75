import type { ModelRun } from "./model-run.ts";
import { runStages } from "./run-stages.ts";
import { runWholeModel } from "./run-whole-model.ts";
import type { RunSettings, SampleRun, SampleVisitor, SampleWork } from "./sample-visitor.ts";

/**
 * Runs a model on samples, one after the other or, where it is run in stages, stage by stage. No
 * process of it is left afterwards.
 * @throws ServiceError evaluation_failed if it cannot be loaded or run; evaluation_data_invalid if
 * it is the original, which refuses the caller's data
 */
export async function runOnSamples<Work extends SampleWork>(
  run: ModelRun,
  visitor: SampleVisitor<Work>,
  settings: RunSettings,
): Promise<SampleRun<Work>> {
  const { staging } = run;
  if (staging === undefined) return runWholeModel(run, visitor, settings);
  const work = await runStages({ ...run, staging }, visitor, settings);
  return { work, peakBytes: undefined, warnings: [] };
}
