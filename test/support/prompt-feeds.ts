import { type InferenceSession, Tensor } from "onnxruntime-node";

/** A prompt without past tokens. */
export function promptFeeds(
  session: InferenceSession,
  tokens: readonly number[],
): Record<string, Tensor> {
  const int64 = (values: readonly number[]) =>
    new Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
  const caches = session.inputMetadata.flatMap((input) => {
    if (!input.isTensor || !input.name.startsWith("past_key_values.")) return [];
    const dims = input.shape.map((size, axis) => (typeof size === "number" ? size : 1 - axis / 2));
    const empty =
      input.type === "float16"
        ? new Tensor("float16", new Uint16Array(), dims)
        : new Tensor("float32", new Float32Array(), dims);
    return [[input.name, empty] as const];
  });
  return {
    input_ids: int64(tokens),
    attention_mask: int64(tokens.map(() => 1)),
    ...Object.fromEntries(caches),
  };
}
