import type { QuantizedFormat, WeightOperation } from "../weight-format.ts";

/** A weight's format for the report, such as `int8 with a scale for each slice of axis 0`. */
export function describeFormat(format: QuantizedFormat): string {
  const [operation = "restore"] = format.operations.toSorted(compareOperations);
  const suffix = format.restoration === "fold" ? ", restored at load" : "";
  return describeNumbers(format, operation) + suffix;
}

/** Operations on quantized values first. */
function compareOperations(a: WeightOperation, b: WeightOperation): number {
  return Number(a === "restore") - Number(b === "restore");
}

function describeNumbers({ storage }: QuantizedFormat, operation: WeightOperation): string {
  if (storage.kind !== "affine") {
    const { bits, blockSize } = storage.format;
    const unit = operation.startsWith("gather") ? "values of a row" : "inputs of an output";
    const operator = blockOperators[operation];
    const suffix = operator === undefined ? "" : `, for ${operator}`;
    return `int${bits} with a scale for each ${blockSize} ${unit}${suffix}`;
  }
  const { axis, format } = storage;
  if (operation === "integer-product" || operation === "recurrent-product") {
    const values = format.reduceRange ? "7-bit values" : format.type;
    const scales = axis === null ? "one scale" : "a scale for each output";
    return `${values} with ${scales}, ${productInputs[operation]}`;
  }
  if (axis === null) return `${format.type} with one scale`;
  return operation === "gather-rows"
    ? `${format.type} with a scale for each row`
    : `${format.type} with a scale for each slice of axis ${axis}`;
}

const productInputs = {
  "integer-product": "inputs in uint8",
  "recurrent-product": "for DynamicQuantizeLSTM",
} as const;

const blockOperators: Readonly<Partial<Record<WeightOperation, string>>> = {
  "block-product": "MatMulNBits",
  "gather-blocks": "GatherBlockQuantized",
};
