import { create } from "@bufbuild/protobuf";
import {
  type CheckpointType,
  checkpointTypeBytes,
  countValues,
  type ValueRows,
} from "../checkpoints/checkpoint-values.ts";
import {
  type AttributeProto,
  GraphProtoSchema,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  TensorProto_DataType as DataType,
  type TensorProto,
  TensorProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
} from "../onnx/onnx_pb.js";
import { intAttribute } from "../onnx/node-attributes.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import { setPayload } from "../onnx/payload.ts";

/** Domain of the operators that are ONNX Runtime's own. */
export const runtimeDomain = "com.microsoft";
/** Those that the graph's operators are of. */
const versions = { ir: 10n, standard: 22n, runtime: 1n } as const;

interface NodeFields {
  /** The results' names follow from it: `NAME/output_0`. */
  readonly name: string;
  readonly opType: string;
  readonly domain?: string;
  /** Names of values; "" where an optional one is left out. */
  readonly input: readonly string[];
  readonly attribute?: readonly AttributeProto[];
  /** Names of the results, where they are not as above. */
  readonly output?: readonly string[] | undefined;
}

/** Collects the nodes, weights, inputs and outputs of a graph, in the order of their use. */
export class GraphBuilder {
  /** Of weights that have no type of their own. */
  readonly type: CheckpointType;
  readonly #model: OnnxModel;
  readonly #graph = create(GraphProtoSchema, { name: "main_graph" });

  /** @param path names the model in tasks and messages; @param bytes are those of the checkpoint */
  constructor(path: string, bytes: number, type: CheckpointType) {
    this.type = type;
    const proto = create(ModelProtoSchema, {
      irVersion: versions.ir,
      opsetImport: [
        { domain: "", version: versions.standard },
        { domain: runtimeDomain, version: versions.runtime },
      ],
      graph: this.#graph,
    });
    this.#model = { path, proto, payloads: [], bytes };
  }

  /** Adds a node. @returns the name of its first result */
  addNode({ name, output, attribute, input, ...fields }: NodeFields): string {
    const outputs = output ?? [`${name}/output_0`];
    const node: NodeProto = create(NodeProtoSchema, {
      ...fields,
      name,
      input: [...input],
      output: [...outputs],
      attribute: [...(attribute ?? [])],
    });
    this.#graph.node.push(node);
    return outputs[0] ?? "";
  }

  /** Adds a weight that consists of pieces, one after the other. @returns its name */
  addWeight(
    name: string,
    dims: readonly number[],
    pieces: readonly ValueRows[],
    type = this.type,
  ): string {
    const values = pieces.reduce((sum, piece) => sum + countValues(piece), 0);
    if (values !== dims.reduce((product, length) => product * length, 1)) {
      throw new RangeError(`The pieces of ${name} have ${values} values, not [${dims.join(", ")}]`);
    }
    const tensor = this.#addTensor(name, elementTypes[type], dims);
    const length = values * checkpointTypeBytes[type];
    setPayload(this.#model, tensor, { kind: "checkpoint", type, length, pieces });
    return name;
  }

  /** Adds a small constant: a scalar of float32, or a list of int64. @returns its name */
  addConstant(name: string, value: number | readonly number[]): string {
    if (typeof value === "number") {
      this.#addTensor(name, DataType.FLOAT, []).floatData = [value];
    } else {
      this.#addTensor(name, DataType.INT64, [value.length]).int64Data = value.map(BigInt);
    }
    return name;
  }

  addInput(name: string, type: ElementType, shape: readonly (number | string)[]): string {
    this.#graph.input.push(describeValue(name, type, shape));
    return name;
  }

  addOutput(name: string, type: CheckpointType, shape: readonly (number | string)[]): string {
    this.#graph.output.push(describeValue(name, type, shape));
    return name;
  }

  /** Converts a value. @returns the name of the result */
  addCast(name: string, value: string, type: CheckpointType, output?: string): string {
    return this.addNode({
      name,
      opType: "Cast",
      input: [value],
      attribute: [intAttribute("to", elementTypes[type])],
      output: output === undefined ? undefined : [output],
    });
  }

  finish(): OnnxModel {
    return this.#model;
  }

  #addTensor(name: string, dataType: DataType, dims: readonly number[]): TensorProto {
    const tensor = create(TensorProtoSchema, { name, dataType, dims: dims.map(BigInt) });
    this.#graph.initializer.push(tensor);
    return tensor;
  }
}

const elementTypes = {
  float32: DataType.FLOAT,
  float16: DataType.FLOAT16,
  int64: DataType.INT64,
} as const;
type ElementType = keyof typeof elementTypes;

function describeValue(
  name: string,
  type: ElementType,
  shape: readonly (number | string)[],
): ValueInfoProto {
  const dim = shape.map((size) => {
    const value =
      typeof size === "number"
        ? ({ case: "dimValue", value: BigInt(size) } as const)
        : ({ case: "dimParam", value: size } as const);
    return { value };
  });
  const tensorType = { elemType: elementTypes[type], shape: { dim } };
  return create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: "tensorType", value: tensorType } },
  });
}
