/** Inputs and outputs of an operator that share its floating-point type; `all` for every one. */
interface HalfOperator {
  readonly inputs: "all" | readonly number[];
  readonly outputs: "all" | readonly number[];
}

const all: HalfOperator = { inputs: "all", outputs: "all" };
const first: HalfOperator = { inputs: [0], outputs: [0] };
const recurrent: HalfOperator = { inputs: [0, 1, 2, 3, 5, 6, 7], outputs: "all" };

/**
 * Operators whose result is larger than their inputs by a small factor at most, so that half
 * precision seldom overflows.
 */
const operators: readonly (readonly [HalfOperator, readonly string[]])[] = [
  [
    all,
    [
      "Conv ConvTranspose MatMul Gemm Einsum InstanceNormalization GroupNormalization Add Sub Mul",
      "Div Min Max Sum Mean Clip PRelu Concat",
    ],
  ],
  [
    first,
    [
      "Gather GatherElements GatherND Reshape Slice Squeeze Unsqueeze Flatten Transpose Identity",
      "Expand Tile Resize Trilu DepthToSpace SpaceToDepth MaxPool AveragePool GlobalAveragePool",
      "GlobalMaxPool ReduceMean ReduceMax ReduceMin Relu LeakyRelu Elu Selu Celu Sigmoid Tanh",
      "HardSigmoid HardSwish Softsign Mish Gelu Erf Sqrt Neg Abs Floor Ceil Round Sign Softmax",
      "LogSoftmax Dropout TopK",
    ],
  ],
  [{ inputs: "all", outputs: [0] }, ["LayerNormalization", "BatchNormalization"]],
  [{ inputs: [0], outputs: "all" }, ["Split"]],
  [{ inputs: [0, 2], outputs: [0] }, ["Pad", "ScatterND", "ScatterElements"]],
  [{ inputs: [1, 2], outputs: [0] }, ["Where"]],
  [{ inputs: "all", outputs: [] }, ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]],
  [{ inputs: [0], outputs: [] }, ["Shape", "Size", "ArgMax", "ArgMin", "IsNaN", "IsInf", "Cast"]],
  [recurrent, ["LSTM", "GRU", "RNN"]],
];

/** Every operator that can work in half precision; all others are kept in single precision. */
export const halfOperators: ReadonlyMap<string, HalfOperator> = new Map(
  operators.flatMap(([types, words]) =>
    words.flatMap((names) => names.split(" ").map((name) => [name, types] as const)),
  ),
);

/** Names at the positions that an operator gives its floating-point type. */
export function halfPositions(
  positions: HalfOperator["inputs"],
  names: readonly string[],
): number[] {
  return [...names.keys()].filter(
    (index) => names[index] !== "" && (positions === "all" || positions.includes(index)),
  );
}
