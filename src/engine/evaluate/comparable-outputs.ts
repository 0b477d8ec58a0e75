import { ServiceError } from "../../contract/errors.ts";
import type { EvaluationWarning } from "./evaluation-warning.ts";
import type { RunnableModel } from "./runnable-model.ts";
import { elementType } from "./tensor-data.ts";

interface ComparableOutputs {
  readonly names: readonly string[];
  /** One for each other output. */
  readonly warnings: readonly EvaluationWarning[];
}

/** Outputs that are tensors of numbers; fetching some of the others ends the process. */
export function comparableOutputs({
  signature,
}: Pick<RunnableModel, "signature">): ComparableOutputs {
  const names: string[] = [];
  const warnings: EvaluationWarning[] = [];
  for (const output of signature.outputs) {
    if (output.isTensor && elementType.safeParse(output.type).success) {
      names.push(output.name);
    } else {
      const content = output.isTensor ? `elements of type ${output.type}` : "no tensor";
      const message = `Output "${output.name}" holds ${content} and was not compared`;
      warnings.push({ code: "output_not_compared", message });
    }
  }
  if (names.length === 0) {
    const message = "The model has no output that holds a tensor of numbers";
    throw new ServiceError("evaluation_failed", message);
  }
  return { names, warnings };
}
