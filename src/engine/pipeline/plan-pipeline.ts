import { at } from "../onnx/at.ts";
import { type BalanceProblem, balanceStages, findFewestStages } from "./balance-stages.ts";
import { countFlops } from "./count-flops.ts";
import { describeValues, type ValueDescription } from "./describe-values.ts";
import { measureSteps } from "./measure-steps.ts";
import { type PipelineGraph, pipelineGraph, type PipelineStep } from "./pipeline-graph.ts";
import { computeStageLoad, type StageLoads } from "./stage-loads.ts";
import type { ProbeOptions } from "./with-probe-session.ts";
import { ServiceError } from "../../contract/errors.ts";
import { type Balance, maxPipelineStages } from "../../contract/jobs/pipeline.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";

interface PlanPipelineOptions extends ProbeOptions {
  readonly balance: Balance;
  /** Number of stages; the least that `maxStageBytes` allows where it is absent. */
  readonly stages?: number | undefined;
  /** Most bytes of parameters in a stage. */
  readonly maxStageBytes?: number | undefined;
  /** Most bytes of a stage's parameters in the runtime's memory, instead of in the file. */
  readonly maxStageRuntimeBytes?: number | undefined;
}

export interface PlannedStage {
  readonly steps: readonly PipelineStep[];
  readonly parameterBytes: number;
  /** What is balanced, in its own unit (`Balance`). */
  readonly load: number;
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
 * Plans how to cut a model into stages of consecutive nodes in topological order. The largest load
 * of a stage is the smallest that is possible, or within 5 % of the mean; among such cuttings, the
 * one with the fewest bytes across all cuts is taken (`balanceStages` proves both). The model's own
 * inputs and outputs go to and from the caller directly and do not count, and no cut goes through a
 * value that is not a tensor.
 * @throws ServiceError recipe_unsupported if no such cutting exists, evaluation_failed if the
 * runtime cannot load or run the model
 */
export async function planPipeline(
  model: OnnxModel,
  options: PlanPipelineOptions,
): Promise<PipelinePlan> {
  const { balance } = options;
  const graph = pipelineGraph(model.proto);
  const values = await describeValues(model, graph, options);
  const bytes = byteLoads(graph);
  const problem: BalanceProblem = {
    balanced: balance === "bytes" ? bytes : await measureStepLoads(model, graph, values, options),
    limited: limitLoads(graph, bytes, options),
    cutCosts: computeCutCosts(graph, values),
  };
  const starts = chooseStageStarts(problem, graph, options);
  const cuts = starts.slice(1).map((start) => describeCut(graph, values, start));
  const loads = { bytes, balanced: problem.balanced };
  return { balance, graph, values, stages: describeStages(graph, starts, loads), cuts };
}

function describeStages(
  { steps }: PipelineGraph,
  starts: readonly number[],
  { bytes, balanced }: { bytes: StageLoads; balanced: StageLoads },
): PlannedStage[] {
  return starts.map((start, index) => {
    const end = starts[index + 1] ?? steps.length;
    return {
      steps: steps.slice(start, end),
      parameterBytes: computeStageLoad(bytes, start, end),
      load: computeStageLoad(balanced, start, end),
    };
  });
}

function limitLoads(
  { parameters }: PipelineGraph,
  bytes: StageLoads,
  { maxStageBytes, maxStageRuntimeBytes }: PlanPipelineOptions,
): BalanceProblem["limited"] {
  if (maxStageRuntimeBytes !== undefined) {
    const parameterLoads = parameters.map(({ runtimeBytes }) => runtimeBytes);
    return { loads: { ...bytes, parameterLoads }, limit: maxStageRuntimeBytes };
  }
  return maxStageBytes === undefined ? undefined : { loads: bytes, limit: maxStageBytes };
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
      (total, index) => total + at(parameters, index).elements,
      0,
    );
    return countFlops(step.node, findShape, elements);
  });
}

type Values = ReadonlyMap<string, ValueDescription>;

/** Indices of the step that computes a value and of the last step that uses it. */
interface ValueLifetime {
  readonly computed: number;
  lastUsed: number;
}

interface PlannedCut {
  readonly bytes: number;
  /** Values computed before the cut and used after it, in the order in which they are computed. */
  readonly values: readonly string[];
}

/** Bytes across a cut before each step from the second on; infinite where a non-tensor crosses. */
function computeCutCosts({ steps }: PipelineGraph, values: Values): number[] {
  const bytes = new Float64Array(steps.length + 1);
  const others = new Int32Array(steps.length + 1);
  for (const [name, { computed, lastUsed }] of valueLifetimes(steps)) {
    const value = values.get(name);
    const [changes, change] = value ? [bytes, value.sampleBytes] : [others, 1];
    changes[computed + 1] = at(changes, computed + 1) + change;
    changes[lastUsed + 1] = at(changes, lastUsed + 1) - change;
  }
  const costs: number[] = [];
  let [crossing, crossingOthers] = [0, 0];
  for (let position = 1; position < steps.length; position++) {
    crossing += at(bytes, position);
    crossingOthers += at(others, position);
    costs.push(crossingOthers > 0 ? Infinity : crossing);
  }
  return costs;
}

/** The cut before the step at `position`. */
function describeCut({ steps }: PipelineGraph, values: Values, position: number): PlannedCut {
  const crossing = [...valueLifetimes(steps)]
    .filter(([, { computed, lastUsed }]) => computed < position && lastUsed >= position)
    .map(([name]) => name);
  const bytes = crossing.reduce((total, name) => total + crossingBytes(values, name), 0);
  return { bytes, values: crossing };
}

function crossingBytes(values: Values, name: string): number {
  const value = values.get(name);
  if (value === undefined)
    throw new TypeError(`Value "${name}" is not a tensor, and crosses a cut`);
  return value.sampleBytes;
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

interface StageLimits {
  /** Number of stages; the least that `maxStageBytes` allows where it is absent. */
  readonly stages?: number | undefined;
  /** Most bytes of parameters in a stage. */
  readonly maxStageBytes?: number | undefined;
}

/** Index of the first step of each stage. @throws ServiceError recipe_unsupported */
function chooseStageStarts(
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
      `${count} stages are needed; at most ${maxPipelineStages} are allowed`,
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
    step.parameters.reduce((total, index) => total + at(parameters, index).bytes, 0),
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
