import { create } from "@bufbuild/protobuf";
import { findDataType } from "../onnx/element-type.ts";
import { GraphProtoSchema, ModelProtoSchema, ValueInfoProtoSchema } from "../onnx/onnx_pb.js";
import type { GraphProto, ModelProto, ValueInfoProto } from "../onnx/onnx_pb.js";
import { CalledFunctions } from "./called-functions.ts";
import type { ValueDescription } from "./describe-values.ts";
import type { PipelinePlan, PlannedStage } from "./plan-pipeline.ts";

/** A stage as a model of its own. */
export interface StageModel {
  readonly proto: ModelProto;
  /** Tensors from the caller or an earlier stage. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

interface StageCutting {
  readonly proto: ModelProto;
  readonly plan: PipelinePlan;
  /** Outputs of all steps. */
  readonly computed: ReadonlySet<string>;
  readonly getValueInfo: (name: string) => ValueInfoProto;
}

/** Creates a model for each stage; the last has outputs that no step computes, such as inputs. */
export function cutStages(proto: ModelProto, plan: PipelinePlan): StageModel[] {
  const computed = new Set(plan.graph.steps.flatMap(({ outputs }) => outputs));
  const cutting = { proto, plan, computed, getValueInfo: valueInfoLookup(plan) };
  return plan.stages.map((stage, index) => cutStage(cutting, stage, index));
}

function cutStage(cutting: StageCutting, stage: PlannedStage, index: number): StageModel {
  const { proto, plan, getValueInfo } = cutting;
  const { graph } = plan.graph;
  const computed = new Set(stage.steps.flatMap(({ outputs }) => outputs));
  const final = finalOutputs(cutting, computed, index);
  const finalNames = final.map(({ name }) => name);
  const used = new Set([...stage.steps.flatMap(({ inputs }) => inputs), ...finalNames]);
  const cutOutputs = (plan.cuts[index]?.values ?? []).filter(
    (name) => computed.has(name) && !finalNames.includes(name),
  );
  const cutInputs = (plan.cuts[index - 1]?.values ?? []).filter((name) => used.has(name));
  const fromCaller = graph.input.filter(({ name }) => used.has(name));
  const input = [...fromCaller, ...cutInputs.map(getValueInfo)];
  const output = [...final, ...cutOutputs.map(getValueInfo)];
  return {
    inputs: [...requiredInputs(fromCaller, graph), ...cutInputs],
    outputs: [...finalNames, ...cutOutputs],
    proto: stageProto(proto, plan, { stage, used, computed, input, output }),
  };
}

/** The model's outputs that come from a stage. */
function finalOutputs(
  { plan, computed }: StageCutting,
  computedHere: ReadonlySet<string>,
  index: number,
): ValueInfoProto[] {
  const isLast = index === plan.stages.length - 1;
  return plan.graph.graph.output.filter(
    ({ name }) => computedHere.has(name) || (isLast && !computed.has(name)),
  );
}

function requiredInputs(inputs: readonly ValueInfoProto[], { initializer }: GraphProto): string[] {
  const initializers = new Set(initializer.map(({ name }) => name));
  return inputs.map(({ name }) => name).filter((name) => !initializers.has(name));
}

/** Types of values: as the model declares them, else as they were inferred. */
function valueInfoLookup({ graph: { graph }, values }: PipelinePlan) {
  const declared = new Map(
    [...graph.valueInfo, ...graph.output].flatMap((info) =>
      info.type?.value.case === "tensorType" ? [[info.name, info]] : [],
    ),
  );
  return (name: string) => declared.get(name) ?? createValueInfo(name, values.get(name));
}

interface StageParts {
  stage: PlannedStage;
  used: ReadonlySet<string>;
  /** Outputs of the stage's steps. */
  computed: ReadonlySet<string>;
  input: ValueInfoProto[];
  output: ValueInfoProto[];
}

function stageProto(
  proto: ModelProto,
  { graph: { graph, constants } }: PipelinePlan,
  parts: StageParts,
): ModelProto {
  const { stage, used, computed, input, output } = parts;
  const ownConstants = [...constants].flatMap(([name, node]) => (used.has(name) ? [node] : []));
  const node = [...ownConstants, ...stage.steps.map((step) => step.node)];
  const outputNames = new Set(output.map(({ name }) => name));
  const changes: Partial<GraphProto> = {
    node,
    input,
    output,
    initializer: graph.initializer.filter(({ name }) => used.has(name)),
    sparseInitializer: graph.sparseInitializer.filter(
      ({ values }) => values && used.has(values.name),
    ),
    valueInfo: graph.valueInfo.filter(({ name }) => computed.has(name) && !outputNames.has(name)),
    quantizationAnnotation: [],
  };
  const stageGraph = Object.assign(create(GraphProtoSchema), graph, changes);
  const functions = [...new CalledFunctions(proto).find(node)];
  return Object.assign(create(ModelProtoSchema), proto, {
    graph: stageGraph,
    functions,
    trainingInfo: [],
  });
}

function createValueInfo(name: string, value: ValueDescription | undefined): ValueInfoProto {
  if (!value) throw new TypeError(`Value "${name}" has no known type`);
  const dim = value.shape.map((size) => ({ value: dimension(size) }));
  const elemType = findDataType(value.type);
  if (elemType === undefined) throw new TypeError(`Type "${value.type}" of "${name}" is not known`);
  return create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: "tensorType", value: { elemType, shape: { dim } } } },
  });
}

function dimension(size: number | string) {
  if (typeof size === "number") return { case: "dimValue" as const, value: BigInt(size) };
  return size === "" ? { case: undefined } : { case: "dimParam" as const, value: size };
}
