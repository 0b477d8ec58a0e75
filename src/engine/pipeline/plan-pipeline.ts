import { ServiceError } from "../../contract/errors.ts";
import { maxPipelineStages, type Balance } from "../../contract/pipeline.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import {
  balanceStages,
  findFewestStages,
  computeStageLoad,
  type BalanceProblem,
  type StageLoads,
} from "./balance-stages.ts";
import { countFlops } from "./count-flops.ts";
import { describeValues, type ValueDescription } from "./describe-values.ts";
import { measureSteps } from "./measure-steps.ts";
import { pipelineGraph, type PipelineGraph, type PipelineStep } from "./pipeline-graph.ts";
import type { ProbeOptions } from "./with-probe-session.ts";

export interface PlanPipelineOptions extends ProbeOptions {
  readonly balance: Balance;
  /** Number of stages; the least that `maxStageBytes` allows where it is absent. */
  readonly stages?: number | undefined;
  /** Most bytes of parameters in a stage. */
  readonly maxStageBytes?: number | undefined;
}

export interface PlannedStage {
  readonly steps: readonly PipelineStep[];
  readonly parameterBytes: number;
  /** What is balanced, in its own unit (`Balance`). */
  readonly load: number;
}

export interface PlannedCut {
  readonly bytes: number;
  /** Values made before the cut and read behind it, in the order in which they are made. */
  readonly values: readonly string[];
}

export interface PipelinePlan {
  readonly balance: Balance;
  readonly graph: PipelineGraph;
  readonly values: ReadonlyMap<string, ValueDescription>;
  readonly stages: readonly PlannedStage[];
  /** One less than there are stages. */
  readonly cuts: readonly PlannedCut[];
}

/**
 * Plans how to cut a model into stages of consecutive nodes in topological order. The largest load of a stage is the smallest that is
 * possible, or within 5 % of the mean; among such cuttings, the one with the fewest bytes across all cuts is taken (`balanceStages`
 * proves both). The model's own inputs and outputs go to and from the caller directly and do not count, and no cut goes through a value
 * that is no tensor.
 *
 * @throws ServiceError recipe_unsupported if no such cutting exists, evaluation_failed if the runtime cannot load or run the model.
 */
export async function planPipeline(
  model: OnnxModel,
  options: PlanPipelineOptions,
): Promise<PipelinePlan> {
  const { balance, maxStageBytes } = options;
  const graph = pipelineGraph(model.proto);
  const values = await describeValues(model, graph, options);
  const bytes = byteLoads(graph);
  const problem: BalanceProblem = {
    balanced: balance === "bytes" ? bytes : await measureStepLoads(model, graph, values, options),
    limited: maxStageBytes === undefined ? undefined : { loads: bytes, limit: maxStageBytes },
    cutCosts: computeCutCosts(graph, values),
  };
  const starts = chooseStageStarts(problem, graph, options);
  const stages = starts.map((start, index) => {
    const end = starts[index + 1] ?? graph.steps.length;
    return {
      steps: graph.steps.slice(start, end),
      parameterBytes: computeStageLoad(bytes, start, end),
      load: computeStageLoad(problem.balanced, start, end),
    };
  });
  return {
    balance,
    graph,
    values,
    stages,
    cuts: starts.slice(1).map((start) => describeCut(graph, values, start)),
  };
}

function byteLoads({ steps, parameters }: PipelineGraph): StageLoads {
  return {
    stepLoads: steps.map(() => 0),
    stepParameters: steps.map((step) => step.parameters),
    parameterLoads: parameters.map(({ bytes }) => bytes),
  };
}

async function measureStepLoads(
  model: OnnxModel,
  graph: PipelineGraph,
  values: ReadonlyMap<string, ValueDescription>,
  options: PlanPipelineOptions,
): Promise<StageLoads> {
  const { steps } = graph;
  const loads =
    options.balance === "time"
      ? await measureSteps(model, graph, options)
      : countStepFlops(graph, values);
  return { stepLoads: loads, stepParameters: steps.map(() => []), parameterLoads: [] };
}

function countStepFlops(
  { steps, parameters, parameterShapes }: PipelineGraph,
  values: ReadonlyMap<string, ValueDescription>,
): number[] {
  const findShape = (name: string) => values.get(name)?.sampleShape ?? parameterShapes.get(name);
  return steps.map((step) => {
    const elements = step.parameters.reduce(
      (total, index) => total + (parameters[index]?.elements ?? 0),
      0,
    );
    return countFlops(step.node, findShape, elements);
  });
}

/** Bytes that cross a cut before each step from the second on; infinite where something crosses that is no tensor. */
function computeCutCosts(
  { steps }: PipelineGraph,
  values: ReadonlyMap<string, ValueDescription>,
): number[] {
  const bytes = new Float64Array(steps.length + 1);
  const others = new Int32Array(steps.length + 1);
  for (const [name, { made, lastRead }] of valueLifetimes(steps)) {
    const value = values.get(name);
    const [changes, change] = value ? [bytes, value.sampleBytes] : [others, 1];
    changes[made + 1] = (changes[made + 1] ?? 0) + change;
    changes[lastRead + 1] = (changes[lastRead + 1] ?? 0) - change;
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

function valueLifetimes(
  steps: readonly PipelineStep[],
): Map<string, { made: number; lastRead: number }> {
  const byName = new Map<string, { made: number; lastRead: number }>();
  for (const [index, { outputs, runtimeInputs }] of steps.entries()) {
    for (const name of outputs) byName.set(name, { made: index, lastRead: index });
    for (const name of runtimeInputs) {
      const lifetime = byName.get(name);
      if (lifetime) lifetime.lastRead = index;
    }
  }
  return byName;
}

function describeCut(
  { steps }: PipelineGraph,
  values: ReadonlyMap<string, ValueDescription>,
  position: number,
): PlannedCut {
  const crossing = [...valueLifetimes(steps)]
    .filter(([, { made, lastRead }]) => made < position && lastRead >= position)
    .map(([name]) => name);
  const bytes = crossing.reduce((total, name) => total + (values.get(name)?.sampleBytes ?? 0), 0);
  return { bytes, values: crossing };
}

function chooseStageStarts(
  problem: BalanceProblem,
  graph: PipelineGraph,
  { stages, maxStageBytes }: PlanPipelineOptions,
): number[] {
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
  const starts = balanceStages(problem, count);
  if (starts) return starts;
  const most = problem.cutCosts.filter(Number.isFinite).length + 1;
  throw recipeUnsupportedError(
    `The model can be cut into ${most} stages at most, and stages is ${count}`,
  );
}

function describeLargestStep(
  { steps, parameters }: PipelineGraph,
  maxStageBytes: number | undefined,
): string {
  const sizes = steps.map((step) =>
    step.parameters.reduce((total, index) => total + (parameters[index]?.bytes ?? 0), 0),
  );
  const largest = Math.max(0, ...sizes);
  const node = steps[sizes.indexOf(largest)]?.node;
  return `No stage can be smaller than the node with the most parameters: ${node?.opType} "${node?.name}" has ${largest} bytes, and maxStageBytes is ${maxStageBytes}`;
}

function recipeUnsupportedError(message: string): ServiceError {
  return new ServiceError("recipe_unsupported", message);
}
