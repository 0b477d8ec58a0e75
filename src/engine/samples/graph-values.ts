import { TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import type { GraphProto, NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { readTensor, tensorByteLength } from "../onnx/read-tensor.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";

/** Largest constant that is read to learn what an input holds. */
const maxConstantBytes = 1024 ** 2;

/** Operators that give the elements of their first input, in another order, shape or type. */
const movers: ReadonlySet<string> = new Set([
  "Identity",
  "Cast",
  "Reshape",
  "Flatten",
  "Squeeze",
  "Unsqueeze",
  "Transpose",
  "Pad",
]);

/** Who makes and who takes the values of a graph, subgraphs apart. */
export class GraphValues {
  readonly #model: OnnxModel;
  readonly #constants: ReadonlyMap<string, TensorProto>;
  readonly #takers = new Map<string, NodeProto[]>();

  constructor(model: OnnxModel, graph: GraphProto) {
    this.#model = model;
    const constants = graph.node.flatMap((node) => {
      const tensor = node.attribute.find(({ name }) => name === "value")?.t;
      const [output = ""] = node.output;
      return node.opType === "Constant" && tensor !== undefined ? [[output, tensor] as const] : [];
    });
    this.#constants = new Map([
      ...graph.initializer.map((tensor) => [tensor.name, tensor] as const),
      ...constants,
    ]);
    for (const node of graph.node) {
      for (const input of new Set(node.input)) {
        const takers = this.#takers.get(input) ?? [];
        takers.push(node);
        this.#takers.set(input, takers);
      }
    }
  }

  /** Nodes that take a value, past nodes that only move its elements; with the name they take. */
  *takers(value: string, seen = new Set<string>()): Generator<[node: NodeProto, value: string]> {
    if (seen.has(value)) return;
    seen.add(value);
    for (const node of this.#takers.get(value) ?? []) {
      const [output = ""] = node.output;
      if (movers.has(node.opType) && node.input[0] === value) yield* this.takers(output, seen);
      else yield [node, value];
    }
  }

  /** Sizes of a constant; undefined for another value. */
  constantDims(name: string): number[] | undefined {
    return this.#constants.get(name)?.dims.map(Number);
  }

  /** A small constant of float32; undefined for another value. */
  readFloats(name: string): Float32Array | undefined {
    const tensor = this.#constants.get(name);
    if (tensor?.dataType !== DataType.FLOAT) return undefined;
    if (tensorByteLength(tensor) > maxConstantBytes) return undefined;
    const bytes = readTensor(this.#model, tensor, maxConstantBytes);
    return new Float32Array(bytes.slice().buffer);
  }
}
