import { create } from "@bufbuild/protobuf";
import { runOnGeneratedSample } from "../samples/generate-sample.ts";
import { tensorNumbers, type TensorData } from "../runtime/tensor-data.ts";
import { countElements } from "../onnx/tensor-shape.ts";
import { findDataType, rawByteLength } from "../onnx/element-type.ts";
import {
  GraphProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
  ValueInfoProtoSchema,
  type ValueInfoProto,
} from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { UniqueNames } from "../onnx/names.ts";
import type { PipelineGraph } from "./pipeline-graph.ts";
import { weightlessModel } from "./weightless-model.ts";
import { withProbeSession, type ProbeOptions } from "./with-probe-session.ts";

/** Type and shape of a value of the graph, and its size on a generated sample. */
export interface ValueDescription {
  readonly type: string;
  /** Open dimensions are given by their names, which may be empty. */
  readonly shape: readonly (number | string)[];
  readonly sampleShape: readonly number[];
  readonly sampleBytes: number;
}

/**
 * Has ONNX Runtime infer the types and shapes of the outputs of all steps, and run the graph once
 * with zeros for weights, so that sizes on a generated sample are known however large the model is.
 * Values that are not tensors are absent.
 * @throws ServiceError evaluation_failed if the runtime cannot load or run the graph
 */
export async function describeValues(
  model: OnnxModel,
  { steps }: PipelineGraph,
  options: ProbeOptions,
): Promise<Map<string, ValueDescription>> {
  const weightless = weightlessModel(model);
  const values = steps.flatMap(({ outputs }) => outputs);
  const types = await inferTypes(weightless, values, options);
  const shapes = await probeShapes(weightless, [...types.keys()], options);
  return new Map(
    [...types].map(([name, value]) => [name, describeValue(value, shapes.get(name) ?? [])]),
  );
}

function describeValue(
  { type, shape }: Pick<ValueDescription, "type" | "shape">,
  sampleShape: readonly number[],
): ValueDescription {
  // The runtime gives no dimensions both for a scalar and where it could not infer the rank.
  const isInferred = shape.length === sampleShape.length;
  const sampleBytes = rawByteLength(countElements(sampleShape), findDataType(type) ?? 0) ?? 0;
  return { type, shape: isInferred ? shape : sampleShape.map(() => ""), sampleShape, sampleBytes };
}

/** Types and shapes of values as the runtime infers them; it is given no values of a subgraph. */
export async function inferTypes(
  model: OnnxModel,
  values: readonly string[],
  options: ProbeOptions,
) {
  const declared = new Map(model.proto.graph?.output.map((output) => [output.name, output]));
  const output = values.map((name) => declared.get(name) ?? create(ValueInfoProtoSchema, { name }));
  const probe = withGraph(model, { output });
  const { outputs } = await withProbeSession(probe, options, ({ signature }) =>
    Promise.resolve(signature),
  );
  return new Map(outputs.flatMap((value) => (value.isTensor ? [[value.name, value]] : [])));
}

/**
 * Adds a Shape node for each value, so that the values themselves need not be fetched. The runtime
 * runs what the last node needs first: with the first value's Shape last, each value is freed once
 * it is used, and of dequantized weights one at a time is in memory.
 */
async function probeShapes(model: OnnxModel, values: readonly string[], options: ProbeOptions) {
  const names = UniqueNames.forModel(model.proto);
  const shaped = values.map((value) => ({ value, shape: names.allocate(`${value}_shape`) }));
  const nodes = shaped.map(({ value, shape }) =>
    create(NodeProtoSchema, { opType: "Shape", input: [value], output: [shape] }),
  );
  const shapeNames = shaped.map(({ shape }) => shape);
  const probe = withGraph(model, {
    node: [...(model.proto.graph?.node ?? []), ...nodes.toReversed()],
    output: shapeNames.map((name): ValueInfoProto => create(ValueInfoProtoSchema, { name })),
  });
  const run = await withProbeSession(probe, options, (session) =>
    runOnGeneratedSample(session, { outputs: shapeNames, signal: options.signal }),
  );
  const outputs = new Map(run.outputs.map((output) => [output.name, output]));
  return new Map(shaped.map(({ value, shape }) => [value, readShapeTensor(outputs.get(shape))]));
}

function readShapeTensor(tensor: TensorData | undefined): number[] {
  return tensor ? Array.from(tensorNumbers(tensor)) : [];
}

function withGraph(
  model: OnnxModel,
  changes: Partial<NonNullable<OnnxModel["proto"]["graph"]>>,
): OnnxModel {
  const graph = Object.assign(create(GraphProtoSchema), model.proto.graph, changes);
  return { ...model, proto: Object.assign(create(ModelProtoSchema), model.proto, { graph }) };
}
