import type { RunnableModel } from "./runnable-model.ts";
import type { Sample } from "./tensor-data.ts";

/** Types and shapes of a sample: `x: float32[1,3], y: int64[1]`. */
export function describeShapes(sample: Sample): string {
  return sample.map(({ name, type, shape }) => `${name}: ${type}[${shape.join()}]`).join(", ");
}

/** Types and shapes of a sample, and what the model takes. */
export function describeSample({ signature }: RunnableModel, sample: Sample): string {
  if (signature.inputs.length === 0) return "which has no inputs";
  const wanted = signature.inputs.map((input) => {
    if (!input.isTensor) return input.name;
    const { name, type, shape } = input;
    return `${name}: ${type}[${shape.map((size) => (size === "" ? "?" : size)).join()}]`;
  });
  return `${describeShapes(sample)} where the model takes ${wanted.join(", ")}`;
}
