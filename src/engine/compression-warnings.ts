import { textLimits } from "../contract/limits.ts";
import { truncate } from "../contract/text/bounded-text.ts";
import type { WarningCode } from "../contract/jobs/warnings.ts";
import { quoteName } from "../contract/text/quote-name.ts";
import type { CompressionPlan } from "./plan-compression.ts";
import type { WeightOperation } from "./quantize/weight-format.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";

export interface CompressionWarning {
  readonly code: WarningCode;
  readonly message: string;
}

/** What a caller has to know of a plan that was carried out. */
export function listCompressionWarnings(plan: CompressionPlan): CompressionWarning[] {
  return [...warnOfFallback(plan), ...warnOfFixedInputs(plan.weights)];
}

/** Whether a format is what a scheme asks for first. */
const hasSchemeForm: Readonly<
  Record<CompressionPlan["scheme"], (format: WeightPlan["format"]) => boolean>
> = {
  "int8-dynamic": (format) => format?.operations.some(isIntegerProduct) ?? false,
  "int4-weight": (format) =>
    format !== undefined && "shape" in format.storage && format.storage.format.bits === 4,
  "int8-weight": () => true,
  fp16: (format) => format?.storage.kind === "half",
};

function isIntegerProduct(operation: WeightOperation): boolean {
  return operation === "integer-product" || operation === "recurrent-product";
}

/** Says so where no weight got what the recipe asks for first. */
function warnOfFallback({ scheme, weights }: CompressionPlan): CompressionWarning[] {
  const quantized = weights.filter(({ format }) => format !== undefined);
  const [largest] = quantized.toSorted((a, b) => b.weight.bytes - a.weight.bytes);
  if (largest?.format === undefined) return [];
  if (quantized.some(({ format }) => hasSchemeForm[scheme](format))) return [];
  const example = `${quoteName(largest.weight.name)} ${largest.reason}`;
  const message =
    `No weight has the recipe's own form; ${quantized.length} have another one, ` +
    `such as ${largest.format.description}: ${example}`;
  return [{ code: "scheme_not_used", message: truncate(message, textLimits.telemetryWarning) }];
}

/** Inputs with a default value that became constants: callers cannot give them any more. */
function warnOfFixedInputs(plans: readonly WeightPlan[]): CompressionWarning[] {
  const fixed = plans.filter(({ weight, format }) => weight.isOverridable && format !== undefined);
  const [first] = fixed;
  if (first === undefined) return [];
  const message =
    `${fixed.length} inputs that have default values, such as ${quoteName(first.weight.name)}, ` +
    "are constants in the result";
  return [{ code: "inputs_fixed", message: truncate(message, textLimits.telemetryWarning) }];
}
