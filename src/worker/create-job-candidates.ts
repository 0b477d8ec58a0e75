import { createCandidateRunner } from "../engine/candidate-runner.ts";
import type { CandidateRunner } from "../engine/candidate.ts";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import type { Stage } from "./stage-clock.ts";

/** Runs candidates of a job where its recipe has the result evaluated by its outputs. */
export function createJobCandidates(
  { assignment, signal }: JobContext,
  inputs: JobInputs,
  stage: Stage,
): CandidateRunner | undefined {
  const { recipe, target } = assignment;
  const { evaluation } = recipe;
  if (evaluation.level !== "outputs" || evaluation.latencyBudgetSeconds === 0) return undefined;
  return createCandidateRunner({
    originalPath: inputs.model.path,
    evaluation,
    executionProvider: target.executionProvider,
    instructionSets: target.instructionSets,
    dataPath: inputs.dataPath,
    signal,
    // The weights are quantized by then, and may be once more.
    onProgress: (_fraction, message) => stage.onProgress(1, message),
    log: stage.log,
  });
}
