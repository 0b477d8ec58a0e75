import { rawByteLength } from "../onnx/element-type.ts";
import { nodeTensors } from "../onnx/model-traversal.ts";
import type { ModelProto, NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { elementCount } from "../onnx/tensor-shape.ts";
import { CalledFunctions } from "./called-functions.ts";

const float32Bytes = 4;

interface Parameter {
  readonly bytes: number;
  /** Bytes in the form in which the runtime keeps it; narrow types count as dequantized. */
  readonly runtimeBytes: number;
  readonly elements: number;
}

/** The parameters of a model, numbered in the order in which they are added. */
export class ParameterIndex {
  readonly all: Parameter[] = [];
  /** Shapes of the parameters that have names. */
  readonly shapes = new Map<string, readonly number[]>();
  readonly #functions: CalledFunctions;
  readonly #named = new Map<string, number>();
  readonly #nodeTensors = new Map<TensorProto, number>();

  constructor(proto: ModelProto) {
    this.#functions = new CalledFunctions(proto);
  }

  addNamed(name: string, tensors: readonly TensorProto[], dims: readonly bigint[]): void {
    this.#named.set(name, this.all.push(createParameter(tensors, dims)) - 1);
    this.shapes.set(name, dims.map(Number));
  }

  has(name: string): boolean {
    return this.#named.has(name);
  }

  find(name: string): number[] {
    const index = this.#named.get(name);
    return index === undefined ? [] : [index];
  }

  /** Adds tensors in a node's attributes and subgraphs and in the functions that it calls. */
  addNodeTensors(node: NodeProto): number[] {
    const bodies = [...this.#functions.find([node])].flatMap((called) => called.node);
    return [...nodeTensors([node, ...bodies])].map((tensor) => {
      const known = this.#nodeTensors.get(tensor);
      if (known !== undefined) return known;
      const index = this.all.push(createParameter([tensor], tensor.dims)) - 1;
      this.#nodeTensors.set(tensor, index);
      return index;
    });
  }
}

function createParameter(tensors: readonly TensorProto[], dims: readonly bigint[]): Parameter {
  let [bytes, elements] = [0, 0];
  for (const { dims, dataType } of tensors) {
    const count = elementCount(dims);
    bytes += rawByteLength(count, dataType) ?? 0;
    elements += count;
  }
  return { bytes, elements, runtimeBytes: Math.max(bytes, elementCount(dims) * float32Bytes) };
}
