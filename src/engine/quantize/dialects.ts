import { type DialectName, isForOtherRuntime, type Recipe } from "../../contract/jobs/recipe.ts";

export type ActivationCodes = "uint8" | "int8";

/** Around which operators, and how, a runtime takes QuantizeLinear and DequantizeLinear (QDQ). */
export interface Dialect {
  /** The runtime, as sentences have it. */
  readonly runtime: string;
  /** Codes that activations may have, those that are written first: of int8 with zero point 0. */
  readonly activations: readonly [ActivationCodes, ...ActivationCodes[]];
  /** Whether codes are int8 with zero point 0 only, of weights too; those that are written are. */
  readonly isSymmetric: boolean;
  /** Operators whose weights may have a scale for each output. */
  readonly channelScales: ReadonlySet<string>;
  /** What a bias has to be; float32 is written where it may be either. */
  readonly biases: "int32" | "float32" | "either";
  /** Operators that are computed in integers only where their result is rounded too. */
  readonly roundedResults: ReadonlySet<string>;
  /** Those that are only where the model has the weight's zero points, though they are 0. */
  readonly writtenZeroPoints: ReadonlySet<string>;
  /** Whether MatMul and Add become a Gemm as the model is loaded, which is in integers or not. */
  readonly joinsAdditions: boolean;
}

/** Operators that are computed in integers in every dialect. */
export const integerOperators: ReadonlySet<string> = new Set(["Conv", "Gemm", "MatMul"]);

/**
 * Operators that give elements of their first input, in the same codes: every runtime moves codes in
 * place of numbers where the scales before and after are the same.
 */
export const movers: ReadonlySet<string> = new Set([
  "Flatten",
  "MaxPool",
  "Reshape",
  "Squeeze",
  "Transpose",
  "Unsqueeze",
]);

/** Operators that are a part of rounding a result where the codes have nothing outside them. */
export const clippers: ReadonlySet<string> = new Set(["Clip", "Relu"]);

const onnxRuntime = {
  activations: ["uint8"],
  isSymmetric: false,
  channelScales: integerOperators,
  biases: "int32",
  roundedResults: new Set(["Conv"]),
  writtenZeroPoints: new Set(["Gemm"]),
  joinsAdditions: true,
} as const;

/** The dialect of a recipe's runtime. */
export function findDialect({ dialect = "cpu" }: Pick<Recipe, "dialect">): Dialect {
  return dialects[dialect];
}

/** Why times on this machine say nothing of a recipe's result; undefined where they do. */
export function explainUntimed(recipe: Recipe): string | undefined {
  if (!isForOtherRuntime(recipe)) return undefined;
  return `the result is for ${findDialect(recipe).runtime}, and was run by ONNX Runtime's own kernels`;
}

/** From documentation and source of each runtime. */
const dialects: Readonly<Record<DialectName, Dialect>> = {
  /**
   * ONNX Runtime's selectors of QDQ groups (`optimizer/qdq_transformer/selectors_actions`): a
   * convolution needs its result rounded to the type of its input, products do not
   * (MatMulIntegerToFloat, QGemm); int8 activations are for ARM only. QGemm needs zero points, which
   * those of other operators (`qdq_actions.cc`, `SetOptionalZeroPoint`) are added for. MatMul and Add of
   * matrices become a Gemm before (`matmul_add_fusion.cc`).
   */
  cpu: { ...onnxRuntime, runtime: "ONNX Runtime on CPUs" },
  /**
   * ONNX Runtime Web's WebAssembly, which is the CPU provider. Its kernels of MLAS (`qgemm.h`,
   * `GemmU8X8DispatchWasmSimd`, `…WasmRelaxedSimd`) are for uint8 activations only.
   */
  browser: { ...onnxRuntime, runtime: "ONNX Runtime Web" },
  /**
   * TensorRT's documentation of explicit quantization: all inputs of weighted operators, not their
   * outputs; activations with one scale. Its parser (onnx-tensorrt, `docs/operators.md`) takes
   * DequantizeLinear of int8, never of int32, and zero points of 0 only.
   */
  tensorrt: {
    runtime: "TensorRT",
    activations: ["int8"],
    isSymmetric: true,
    channelScales: integerOperators,
    biases: "float32",
    roundedResults: new Set(),
    writtenZeroPoints: new Set(),
    joinsAdditions: false,
  },
  /**
   * Qualcomm's QNN by ONNX Runtime's provider, which takes whole QDQ groups: without a rounded result a
   * product is none (`selectors_actions/shared/utils.cc`). Scales of outputs are for convolutions by
   * its own tool (`quantization/execution_providers/qnn/quant_config.py`); onnxruntime-qnn 2.7 has them
   * for products too.
   */
  qnn: {
    ...onnxRuntime,
    runtime: "QNN",
    channelScales: new Set(["Conv"]),
    roundedResults: integerOperators,
    writtenZeroPoints: new Set(),
    joinsAdditions: false,
  },
  /**
   * OpenVINO's low precision transformations: activations with one scale, since only such a
   * dequantization moves after a convolution (`ConvolutionTransformation`); types as NNCF has them
   * for it (`nncf/common/hardware/configs/cpu.json`).
   */
  openvino: {
    runtime: "OpenVINO",
    activations: ["uint8", "int8"],
    isSymmetric: false,
    channelScales: integerOperators,
    biases: "either",
    roundedResults: new Set(),
    writtenZeroPoints: new Set(),
    joinsAdditions: false,
  },
};
