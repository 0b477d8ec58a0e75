import type { Balance } from "../../contract/jobs/pipeline.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import type { BalanceProblem } from "./balance-stages.ts";
import { chooseStageStarts } from "./choose-stage-starts.ts";
import { countFlops } from "./count-flops.ts";
import { computeCutCosts, describeCut, type PlannedCut } from "./cut-costs.ts";
import { describeValues, type ValueDescription } from "./describe-values.ts";
import { measureSteps } from "./measure-steps.ts";
import { pipelineGraph, type PipelineGraph } from "./pipeline-graph.ts";
import type { PipelineStep } from "./pipeline-step.ts";
import { computeStageLoad, type StageLoads } from "./stage-loads.ts";
import type { ProbeOptions } from "./with-probe-session.ts";

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
 * value that is no tensor.
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
      (total, index) => total + (parameters[index]?.elements ?? 0),
      0,
    );
    return countFlops(step.node, findShape, elements);
  });
}
