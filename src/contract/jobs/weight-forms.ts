interface WeightForm {
  readonly form: string;
  readonly usedBy: string;
  /** Memory of the weights on ONNX Runtime's CPU provider, relative to the original's bytes. */
  readonly running: number;
  /** The same at most, while the model is loaded. */
  readonly loading: number;
}

/** What weights of each form cost in memory, as `npm run bench -- weight-memory` measured it. */
export const weightForms: readonly WeightForm[] = [
  { form: "float32, as it was", usedBy: "products", running: 1.91, loading: 1.91 },
  { form: "float16", usedBy: "products", running: 1.63, loading: 1.82 },
  { form: "int8, restored at load", usedBy: "products", running: 2.85, loading: 3.1 },
  {
    form: "int8 by DequantizeLinear, fused with its product",
    usedBy: "products",
    running: 1.01,
    loading: 1.01,
  },
  {
    form: "int8 by DequantizeLinear, each time (`dequantize: run`)",
    usedBy: "transposed products",
    running: 0.79,
    loading: 0.79,
  },
  {
    form: "8-bit or 7-bit values, inputs in uint8",
    usedBy: "products",
    running: 0.66,
    loading: 0.66,
  },
  { form: "int8 blocks, for MatMulNBits", usedBy: "products", running: 0.76, loading: 0.77 },
  { form: "int4 blocks, for MatMulNBits", usedBy: "products", running: 0.47, loading: 0.47 },
  {
    form: "int4 blocks by DequantizeLinear, fused with its product",
    usedBy: "products",
    running: 0.62,
    loading: 0.62,
  },
  { form: "float32 rows, as they were", usedBy: "embeddings", running: 1.03, loading: 2.03 },
  { form: "int8 with a scale for each row", usedBy: "embeddings", running: 0.29, loading: 0.53 },
  {
    form: "int4 blocks, for GatherBlockQuantized",
    usedBy: "embeddings",
    running: 0.35,
    loading: 0.47,
  },
  { form: "float32, as it was", usedBy: "LSTM", running: 1.03, loading: 1.53 },
  { form: "int8, restored at load", usedBy: "LSTM", running: 1.04, loading: 2.91 },
  {
    form: "8-bit or 7-bit values, for DynamicQuantizeLSTM",
    usedBy: "LSTM",
    running: 0.66,
    loading: 0.78,
  },
];
