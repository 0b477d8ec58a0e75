import { create } from "@bufbuild/protobuf";
import { findDataType } from "../onnx/element-type.ts";
import { GraphProtoSchema, ModelProtoSchema, ValueInfoProtoSchema } from "../onnx/onnx_pb.js";
import type { GraphProto, ModelProto, ValueInfoProto } from "../onnx/onnx_pb.js";
import type { ValueDescription } from "./describe-values.ts";
import { calledFunctions } from "./pipeline-graph.ts";
import type { PipelinePlan, PlannedStage } from "./plan-pipeline.ts";

/** A stage as a model of its own. */
export interface StageModel {
  readonly proto: ModelProto;
  /** Tensors that the caller or an earlier stage feeds. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

/** Cuts the model into its stages. Outputs that no step makes, such as inputs handed through, come from the last one. */
export function cutStages(proto: ModelProto, plan: PipelinePlan): StageModel[] {
  const { graph, steps } = plan.graph;
  const madeAnywhere = new Set(steps.flatMap(({ outputs }) => outputs));
  const initializers = new Set(graph.initializer.map(({ name }) => name));
  const declared = new Map(
    [...graph.valueInfo, ...graph.output].flatMap((info) =>
      info.type?.value.case === "tensorType" ? [[info.name, info]] : [],
    ),
  );
  const getValueInfo = (name: string) =>
    declared.get(name) ?? createValueInfo(name, plan.values.get(name));
  return plan.stages.map((stage, index) => {
    const made = new Set(stage.steps.flatMap(({ outputs }) => outputs));
    const isLast = index === plan.stages.length - 1;
    const final = graph.output.filter(
      ({ name }) => made.has(name) || (isLast && !madeAnywhere.has(name)),
    );
    const finalNames = final.map(({ name }) => name);
    const used = new Set([...stage.steps.flatMap(({ inputs }) => inputs), ...finalNames]);
    const cutOutputs = (plan.cuts[index]?.values ?? []).filter(
      (name) => made.has(name) && !finalNames.includes(name),
    );
    const cutInputs = (plan.cuts[index - 1]?.values ?? []).filter((name) => used.has(name));
    const fromCaller = graph.input.filter(({ name }) => used.has(name));
    const required = fromCaller.map(({ name }) => name).filter((name) => !initializers.has(name));
    return {
      inputs: [...required, ...cutInputs],
      outputs: [...finalNames, ...cutOutputs],
      proto: stageProto(proto, plan, {
        stage,
        used,
        made,
        input: [...fromCaller, ...cutInputs.map(getValueInfo)],
        output: [...final, ...cutOutputs.map(getValueInfo)],
      }),
    };
  });
}

interface StageParts {
  stage: PlannedStage;
  used: ReadonlySet<string>;
  made: ReadonlySet<string>;
  input: ValueInfoProto[];
  output: ValueInfoProto[];
}

function stageProto(
  proto: ModelProto,
  { graph: { graph, constants } }: PipelinePlan,
  parts: StageParts,
): ModelProto {
  const { stage, used, made, input, output } = parts;
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
    valueInfo: graph.valueInfo.filter(({ name }) => made.has(name) && !outputNames.has(name)),
    quantizationAnnotation: [],
  };
  const stageGraph = Object.assign(create(GraphProtoSchema), graph, changes);
  const functions = [...calledFunctions(proto, node)];
  return Object.assign(create(ModelProtoSchema), proto, {
    graph: stageGraph,
    functions,
    trainingInfo: [],
  });
}

function createValueInfo(name: string, value: ValueDescription | undefined): ValueInfoProto {
  if (!value) throw new TypeError(`Value "${name}" has no known type`);
  const dim = value.shape.map((size) => ({ value: dimension(size) }));
  const elemType = findDataType(value.type) ?? 0;
  return create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: "tensorType", value: { elemType, shape: { dim } } } },
  });
}

function dimension(size: number | string) {
  if (typeof size === "number") return { case: "dimValue" as const, value: BigInt(size) };
  return size === "" ? { case: undefined } : { case: "dimParam" as const, value: size };
}
