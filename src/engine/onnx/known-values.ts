import { TensorProto_DataType } from "./onnx_pb.js";
import type { FunctionProto, GraphProto, TensorProto, ValueInfoProto } from "./onnx_pb.js";

interface KnownValue {
  readonly elementType?: number;
  readonly rank?: number;
  readonly constant?: TensorProto;
}

/** What a graph or function declares about its values: element types, ranks and constants. */
export class KnownValues {
  readonly #values = new Map<string, KnownValue>();
  readonly #outer: KnownValues | undefined;

  constructor(body: GraphProto | FunctionProto, outer: KnownValues | undefined) {
    this.#outer = outer;
    const isGraph = body.$typeName === "onnx.GraphProto";
    for (const info of isGraph
      ? [...body.valueInfo, ...body.input, ...body.output]
      : body.valueInfo) {
      this.#values.set(info.name, declaredValue(info));
    }
    if (isGraph) for (const tensor of body.initializer) this.addConstant(tensor.name, tensor);
    for (const node of body.node) {
      const [output] = node.output;
      const tensor =
        node.opType === "Constant"
          ? node.attribute.find(({ name }) => name === "value")?.t
          : undefined;
      if (tensor !== undefined && output !== undefined) this.addConstant(output, tensor);
      else for (const name of node.output) if (!this.#values.has(name)) this.#values.set(name, {});
    }
  }

  find(name: string): KnownValue | undefined {
    return this.#values.get(name) ?? this.#outer?.find(name);
  }

  addConstant(name: string, tensor: TensorProto): void {
    this.#values.set(name, {
      elementType: tensor.dataType,
      rank: tensor.dims.length,
      constant: tensor,
    });
  }
}

function declaredValue({ type }: ValueInfoProto): KnownValue {
  if (type?.value.case !== "tensorType") return {};
  const { elemType, shape } = type.value.value;
  return {
    ...(elemType !== TensorProto_DataType.UNDEFINED && { elementType: elemType }),
    ...(shape !== undefined && { rank: shape.dim.length }),
  };
}

/** The elements of a float32 tensor that is held in memory; undefined for others. */
export function floatElements(tensor: TensorProto): number[] | undefined {
  if (tensor.dataType !== TensorProto_DataType.FLOAT || tensor.externalData.length > 0)
    return undefined;
  if (tensor.rawData.length === 0) return tensor.floatData;
  const view = new DataView(
    tensor.rawData.buffer,
    tensor.rawData.byteOffset,
    tensor.rawData.byteLength,
  );
  return Array.from({ length: tensor.rawData.length / 4 }, (_, index) =>
    view.getFloat32(index * 4, true),
  );
}
