import { findAttribute } from "../onnx/node-attributes.ts";
import { TensorProto_DataType } from "../onnx/onnx_pb.js";
import type {
  FunctionProto,
  GraphProto,
  NodeProto,
  TensorProto,
  ValueInfoProto,
} from "../onnx/onnx_pb.js";

interface KnownValue {
  readonly elementType?: number | undefined;
  readonly rank?: number | undefined;
  readonly constant?: TensorProto;
}

/** What a graph or function declares about its values: element types, ranks and constants. */
export class KnownValues {
  readonly #values = new Map<string, KnownValue>();
  readonly #outer: KnownValues | undefined;

  constructor(body: GraphProto | FunctionProto, outer: KnownValues | undefined) {
    this.#outer = outer;
    const isGraph = body.$typeName === "onnx.GraphProto";
    const inputsAndOutputs = isGraph ? [...body.input, ...body.output] : [];
    for (const info of [...body.valueInfo, ...inputsAndOutputs]) {
      this.#values.set(info.name, declaredValue(info));
    }
    if (isGraph) for (const tensor of body.initializer) this.addConstant(tensor.name, tensor);
    for (const node of body.node) this.#addOutputs(node);
  }

  #addOutputs(node: NodeProto): void {
    const [output] = node.output;
    const tensor = node.opType === "Constant" ? findAttribute(node, "value")?.t : undefined;
    if (tensor !== undefined && output !== undefined) this.addConstant(output, tensor);
    else for (const name of node.output) if (!this.#values.has(name)) this.#values.set(name, {});
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
  const isTyped = elemType !== TensorProto_DataType.UNDEFINED;
  return { elementType: isTyped ? elemType : undefined, rank: shape?.dim.length };
}
