import { findAttribute } from "../onnx/node-attributes.ts";
import { openModel } from "../onnx/open-model.ts";
import { TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import type { GraphProto, NodeProto, TensorProto } from "../onnx/onnx_pb.js";
import { readTensor, tensorByteLength } from "../onnx/read-tensor.ts";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import type { ModelSignature } from "./session-protocol.ts";

/**
 * The signature with the sizes of keys and values of past tokens that the model's attention has and
 * its inputs leave open: the runtime takes no others.
 */
export async function fixCacheSizes(
  modelPath: string,
  signature: ModelSignature,
): Promise<ModelSignature> {
  const isOpenCache = (input: ModelSignature["inputs"][number]) =>
    input.isTensor && input.shape.length === 4 && input.shape.some(isOpen);
  if (!signature.inputs.some((input) => isOpenCache(input))) return signature;
  const caches = findCaches(await openModel(modelPath, Number.MAX_SAFE_INTEGER));
  const inputs = signature.inputs.map((input) => {
    const cache = caches.get(input.name);
    if (!input.isTensor || cache === undefined || input.shape.length !== 4) return input;
    const sizes = [undefined, cache.heads, undefined, cache.headSize];
    const shape = input.shape.map((size, axis) => (isOpen(size) ? (sizes[axis] ?? size) : size));
    return { ...input, shape };
  });
  return { ...signature, inputs };
}

function isOpen(size: number | string): boolean {
  return typeof size === "string";
}

interface Cache {
  readonly heads: number;
  readonly headSize: number | undefined;
}

/** Attention over `[batch, heads, past tokens, head size]`, and which of its inputs are those. */
const attentions: Readonly<Record<string, { heads: string; pasts: readonly number[] }>> = {
  GroupQueryAttention: { heads: "kv_num_heads", pasts: [3, 4] },
  MultiHeadAttention: { heads: "num_heads", pasts: [6, 7] },
};

/** The caches that attention takes, by the name of the input. */
function findCaches(model: OnnxModel): Map<string, Cache> {
  const caches = new Map<string, Cache>();
  const { graph } = model.proto;
  if (graph === undefined) return caches;
  const sizes = new LastSizes(model, graph);
  for (const node of graph.node) {
    const attention = attentions[node.opType];
    if (attention === undefined) continue;
    const heads = readInteger(node, attention.heads);
    const [query = "", key = ""] = node.input;
    // Without keys of their own, the queries have keys and values behind them.
    const packed = readInteger(node, "num_heads") + 2 * heads;
    const size = key === "" ? divide(sizes.find(query), packed) : divide(sizes.find(key), heads);
    for (const input of attention.pasts) {
      const name = node.input[input] ?? "";
      if (name !== "" && heads > 0) caches.set(name, { heads, headSize: size });
    }
  }
  return caches;
}

function readInteger(node: NodeProto, name: string): number {
  return Number(findAttribute(node, name)?.i ?? 0n);
}

function divide(size: number | undefined, parts: number): number | undefined {
  const part = size === undefined ? NaN : size / parts;
  return Number.isSafeInteger(part) && part > 0 ? part : undefined;
}

/** Nodes that are followed towards the weight that says a value's size. */
const maxSteps = 32;
/** Largest list of sizes. */
const maxListBytes = 64;

/** Sizes of the last axes of a graph's values, as far as weights say them. */
class LastSizes {
  readonly #model: OnnxModel;
  readonly #producers: ReadonlyMap<string, NodeProto>;
  readonly #initializers: ReadonlyMap<string, TensorProto>;

  constructor(model: OnnxModel, { node: nodes, initializer }: GraphProto) {
    this.#model = model;
    this.#producers = new Map(
      nodes.flatMap((node) => node.output.map((name) => [name, node] as const)),
    );
    this.#initializers = new Map(initializer.map((tensor) => [tensor.name, tensor]));
  }

  find(name: string, steps = 0): number | undefined {
    const dims = this.#initializers.get(name)?.dims;
    if (dims !== undefined) return toSize(dims.at(-1));
    const node = this.#producers.get(name);
    if (node === undefined || steps === maxSteps) return undefined;
    const [first = "", second = ""] = node.input;
    switch (node.opType) {
      case "MatMul":
        return this.find(second, steps + 1);
      case "MatMulNBits":
        return readInteger(node, "N");
      case "Add":
        return this.find(this.#initializers.has(first) ? second : first, steps + 1);
      case "Reshape":
        return this.#readLast(second);
      case "ConstantOfShape":
        return this.#readLast(first);
      default:
        return undefined;
    }
  }

  /** The last of a constant list of sizes. */
  #readLast(name: string): number | undefined {
    const constant = this.#producers.get(name)?.attribute.find((each) => each.name === "value")?.t;
    const tensor = this.#initializers.get(name) ?? constant;
    if (tensor?.dataType !== DataType.INT64 || tensorByteLength(tensor) > maxListBytes) {
      return undefined;
    }
    const { buffer } = readTensor(this.#model, tensor).slice();
    return toSize(new BigInt64Array(buffer).at(-1));
  }
}

function toSize(size: bigint | undefined): number | undefined {
  return size !== undefined && size > 0n ? Number(size) : undefined;
}
