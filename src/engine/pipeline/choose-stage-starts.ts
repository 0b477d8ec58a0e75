import { ServiceError } from "../../contract/errors.ts";
import { maxPipelineStages } from "../../contract/jobs/pipeline.ts";
import { balanceStages, findFewestStages, type BalanceProblem } from "./balance-stages.ts";
import type { PipelineGraph } from "./pipeline-graph.ts";

interface StageLimits {
  /** Number of stages; the least that `maxStageBytes` allows where it is absent. */
  readonly stages?: number | undefined;
  /** Most bytes of parameters in a stage. */
  readonly maxStageBytes?: number | undefined;
}

/** Index of the first step of each stage. @throws ServiceError recipe_unsupported */
export function chooseStageStarts(
  problem: BalanceProblem,
  graph: PipelineGraph,
  limits: StageLimits,
): number[] {
  const count = countStages(problem, graph, limits);
  const starts = balanceStages(problem, count);
  if (starts) return starts;
  const most = problem.cutCosts.filter(Number.isFinite).length + 1;
  throw recipeUnsupportedError(
    `The model can be cut into ${most} stages at most, and stages is ${count}`,
  );
}

function countStages(
  problem: BalanceProblem,
  graph: PipelineGraph,
  { stages, maxStageBytes }: StageLimits,
): number {
  const least = findFewestStages(problem);
  if (least === undefined) throw recipeUnsupportedError(describeLargestStep(graph, maxStageBytes));
  const count = stages ?? least;
  if (count > maxPipelineStages) {
    throw recipeUnsupportedError(
      `${count} stages are needed, and ${maxPipelineStages} are allowed`,
    );
  }
  if (count < least) {
    throw recipeUnsupportedError(
      `maxStageBytes ${maxStageBytes} needs ${least} stages, and stages is ${count}`,
    );
  }
  return count;
}

function describeLargestStep(
  { steps, parameters }: PipelineGraph,
  maxStageBytes: number | undefined,
): string {
  const sizes = steps.map((step) =>
    step.parameters.reduce((total, index) => total + (parameters[index]?.bytes ?? 0), 0),
  );
  const largest = sizes.reduce((most, bytes) => Math.max(most, bytes), 0);
  const node = steps[sizes.indexOf(largest)]?.node;
  const size = `has ${largest} bytes, and maxStageBytes is ${maxStageBytes}`;
  const step = `${node?.opType} "${node?.name}" ${size}`;
  return `No stage can be smaller than the node with the most parameters: ${step}`;
}

function recipeUnsupportedError(message: string): ServiceError {
  return new ServiceError("recipe_unsupported", message);
}
