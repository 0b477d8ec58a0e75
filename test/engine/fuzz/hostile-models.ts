import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AttributeProto_AttributeType as AttributeType,
  ModelProtoSchema,
  TensorProto_DataType as DataType,
} from "../../../src/engine/onnx/onnx_pb.js";
import type {
  FunctionProtoSchema,
  GraphProtoSchema,
  NodeProtoSchema,
  TensorProtoSchema,
} from "../../../src/engine/onnx/onnx_pb.js";
import {
  floatInitializer,
  graphAttribute,
  integerAttribute,
  node,
  tensorInfo,
} from "../../support/tiny-model.ts";

type Graph = Exclude<MessageInitShape<typeof GraphProtoSchema>, { $typeName: string }>;
type Node = MessageInitShape<typeof NodeProtoSchema>;
type PlainNode = Exclude<Node, { $typeName: string }>;
type LocalFunction = MessageInitShape<typeof FunctionProtoSchema>;

interface Hostile {
  readonly graph: Graph;
  readonly functions?: LocalFunction[];
  readonly opset?: number;
  readonly domains?: string[];
}

const weight = floatInitializer("w", [32, 32], (index) => Math.sin(index));
const product = node("MatMul", ["x", "w"], ["y"]);
const io = { input: [tensorInfo("x", [1, 32])], output: [tensorInfo("y", [1, 32])] };

/** A small product with other nodes beside it. */
function beside(nodes: Node[], graph: Graph = {}): Graph {
  const { initializer = [], ...rest } = graph;
  return { ...io, ...rest, initializer: [weight, ...initializer], node: [product, ...nodes] };
}

function range<T>(count: number, create: (index: number) => T): T[] {
  return Array.from({ length: Math.ceil(count) }, (_, index) => create(index));
}

/** Graphs within graphs, `depth` deep, with the nodes of `inner` in each. */
function nest(depth: number, inner: (level: number) => Node[]): Node[] {
  let nodes = inner(depth);
  for (let level = depth - 1; level >= 0; level--) {
    const graph: Graph = { node: nodes, output: [tensorInfo(`o${level}`, [1])] };
    const branches = [graphAttribute("then_branch", graph), graphAttribute("else_branch", {})];
    nodes = [...inner(level), node("If", ["x"], [`r${level}`], branches)];
  }
  return nodes;
}

function localFunction(
  name: string,
  nodes: Node[],
  more: Partial<Exclude<LocalFunction, { $typeName: string }>> = {},
): LocalFunction {
  const opsetImport = [{ domain: "", version: 17n }];
  const signature = { domain: "local", input: ["a"], output: ["b"] };
  return { name, ...signature, opsetImport, node: nodes, ...more };
}

function call(opType: string, input: string, output: string, more: Partial<PlainNode> = {}): Node {
  return { opType, domain: "local", input: [input], output: [output], ...more };
}

const axes = [{ name: "axes", type: AttributeType.INTS, ints: [0n] }];

/** Models whose size is about `n` nodes or names, each hard on one of the engine's algorithms. */
export const hostileModels: Readonly<Record<string, (n: number) => Hostile>> = {
  "a Concat before the makers of its inputs": (n) => ({
    graph: beside([
      node(
        "Concat",
        range(n, (i) => `p${i}`),
        ["all"],
        [integerAttribute("axis", 0)],
      ),
      ...range(n, (i) => node("Relu", ["x"], [`p${i}`])),
    ]),
  }),
  "a chain of Identity that is listed backwards": (n) => ({
    graph: beside(range(n, (i) => node("Identity", [i === n - 1 ? "w" : `i${i + 1}`], [`i${i}`]))),
  }),
  "a chain of Identity": (n) => ({
    graph: beside(range(n, (i) => node("Identity", [i === 0 ? "w" : `i${i - 1}`], [`i${i}`]))),
  }),
  "deep graphs that capture many names": (n) => ({
    graph: beside(
      nest(28, (level) =>
        range(level === 28 ? n : 1, (i) => node("Relu", [`c${i}`], [`d${level}_${i}`])),
      ),
    ),
  }),
  "deep graphs with many nodes each": (n) => ({
    graph: beside(
      nest(28, (level) => range(n / 28, (i) => node("Add", ["x", "w"], [`d${level}_${i}`]))),
    ),
  }),
  "many small graphs": (n) => ({
    graph: beside(
      range(n / 3, (i) =>
        node(
          "If",
          ["x"],
          [`r${i}`],
          [
            graphAttribute("then_branch", { node: [node("Relu", ["w"], ["a"])] }),
            graphAttribute("else_branch", {}),
          ],
        ),
      ),
    ),
  }),
  "functions that each call the next one twice": () => ({
    graph: beside([call("f0", "x", "z")]),
    domains: ["local"],
    functions: range(32, (i) =>
      localFunction(`f${i}`, [call(`f${i + 1}`, "a", "c"), call(`f${i + 1}`, "c", "b")]),
    ),
  }),
  "calls of a function with a large attribute": (n) => ({
    graph: beside(range(n / 2, (i) => call("f", "x", `z${i}`))),
    domains: ["local"],
    functions: [
      localFunction("f", [
        node(
          "Relu",
          ["a"],
          ["b"],
          [{ name: "ints", type: AttributeType.INTS, ints: range(n, BigInt) }],
        ),
      ]),
    ],
  }),
  "calls with a long name": (n) => ({
    graph: beside(
      range(n / 100, (i) => call("f", "x", `z${i}`, { name: `${"n".repeat(9000)}${i}` })),
    ),
    domains: ["local"],
    functions: [
      localFunction(
        "f",
        range(n / 100, (i) => node("Relu", [i === 0 ? "a" : `r${i - 1}`], [`r${i}`])),
      ),
    ],
  }),
  "functions that import many operator sets": (n) => {
    const domains = range(n / 4, (i) => `d${i}`);
    return {
      graph: beside(range(n / 4, (i) => call("f", "x", `z${i}`))),
      domains: ["local", ...domains],
      functions: [
        localFunction("f", [node("Relu", ["a"], ["b"])], {
          opsetImport: domains.map((domain) => ({ domain, version: 1n })),
        }),
      ],
    };
  },
  "functions of another opset whose attributes become inputs": (n) => ({
    opset: 12,
    graph: beside(range(n / 8, (i) => call(`f${i}`, "x", `z${i}`, { attribute: axes }))),
    domains: ["local"],
    functions: range(n / 8, (i) =>
      localFunction(
        `f${i}`,
        [
          node(
            "Unsqueeze",
            ["a"],
            ["b"],
            [{ name: "axes", type: AttributeType.INTS, refAttrName: "axes" }],
          ),
        ],
        { attribute: ["axes"], opsetImport: [{ domain: "", version: 11n }] },
      ),
    ),
  }),
  "names that collide with names that are added": (n) => ({
    graph: beside(range(n, (i) => node("Relu", ["x"], [`w_quantized_${i}`]))),
  }),
  "a node with many inputs": (n) => ({
    graph: beside([
      node(
        "Sum",
        range(n * 4, () => "x"),
        ["s"],
      ),
    ]),
  }),
  "many attributes on one node": (n) => ({
    graph: beside([
      node(
        "Relu",
        ["x"],
        ["s"],
        range(n, (i) => integerAttribute(`a${i}`, i)),
      ),
    ]),
  }),
  "many entries of external data": (n) => ({
    graph: beside([], {
      initializer: [
        {
          name: "e",
          dims: [1n],
          dataType: DataType.FLOAT,
          floatData: [1],
          externalData: range(n * 2, () => ({ key: "k", value: "v" })),
        },
      ],
    }),
  }),
  "many tiny initializers": (n) => ({
    graph: beside([], { initializer: range(n, (i) => floatInitializer(`t${i}`, [1], () => i)) }),
  }),
  "many slices of a large weight": (n) => ({
    graph: beside(
      range(n / 100, (i) => [
        node("Slice", ["large", "starts", "ends", "axes"], [`slice${i}`]),
        node("MatMul", ["x", `slice${i}`], [`product${i}`]),
      ]).flat(),
      {
        initializer: [
          floatInitializer("large", [32, n * 4], (i) => i % 7),
          ...Object.entries({ starts: 0n, ends: 32n, axes: 1n }).map(([name, value]) => ({
            name,
            dims: [1n],
            dataType: DataType.INT64,
            int64Data: [value],
          })),
        ],
      },
    ),
  }),
  "half-precision values as varints": (n) => ({
    graph: {
      input: [tensorInfo("x", [1, 10], DataType.FLOAT16)],
      output: [tensorInfo("y", [1, n], DataType.FLOAT16)],
      initializer: [
        {
          name: "w",
          dims: [10n, BigInt(n)],
          dataType: DataType.FLOAT16,
          int32Data: range(n * 10, (i) => 0x3c00 + (i % 500)),
        } satisfies MessageInitShape<typeof TensorProtoSchema>,
      ],
      node: [product],
    },
  }),
  "old operators that are rewritten": (n) => ({
    opset: 11,
    graph: beside(
      range(n / 2, (i) =>
        i % 2 === 0
          ? node("Unsqueeze", ["x"], [`u${i}`], axes)
          : node("Softmax", ["x"], [`u${i}`], [integerAttribute("axis", 0)]),
      ),
    ),
  }),
};

/** Encodes a model, of about `n` nodes or names. */
export function encodeHostile(name: string, n: number): Uint8Array {
  const {
    graph,
    functions = [],
    opset = 17,
    domains = [],
  } = hostileModels[name]?.(n) ?? {
    graph: {},
  };
  const model = create(ModelProtoSchema, {
    irVersion: 10n,
    opsetImport: [
      { domain: "", version: BigInt(opset) },
      ...domains.map((domain) => ({ domain, version: 1n })),
    ],
    functions,
    graph: { name: "hostile", ...graph },
  });
  return toBinary(ModelProtoSchema, model);
}
