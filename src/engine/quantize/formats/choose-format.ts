import type { Recipe } from "../../../contract/recipe.ts";
import type { Weight } from "../find-weights.ts";
import type { PlannedFormat, WeightPlan } from "../weight-plan.ts";
import { blockedDequantizeLinearFormat } from "./blocked-dequantize-linear-format.ts";
import { dequantizeLinearFormat } from "./dequantize-linear-format.ts";
import { dynamicMatMulFormat } from "./dynamic-matmul-format.ts";
import { gatherBlockQuantizedFormat } from "./gather-block-quantized-format.ts";
import { gatherRowsFormat } from "./gather-rows-format.ts";
import { matMulNBitsFormat } from "./matmul-nbits-format.ts";
import type { QuantizationFormat } from "./quantization-format.ts";

/** Plans the first format of the recipe's scheme, else of its fallback, that saves bytes. */
export function chooseFormat(
  weight: Weight,
  recipe: Recipe,
  originalBytes: number,
): Pick<WeightPlan, "format" | "reason"> {
  const own = planFirstFormat(weight, recipe, { scheme: recipe.scheme, originalBytes });
  if (typeof own !== "string") return { format: own, reason: undefined };
  if (recipe.fallback === "none") return { format: undefined, reason: own };
  const other = planFirstFormat(weight, recipe, { scheme: recipe.fallback, originalBytes });
  if (typeof other !== "string") return { format: other, reason: own };
  return { format: undefined, reason: own === other ? own : `${own}; ${other}` };
}

function planFirstFormat(
  weight: Weight,
  recipe: Recipe,
  { scheme, originalBytes }: { scheme: Recipe["scheme"]; originalBytes: number },
): PlannedFormat | string {
  let reason = `has no form in ${scheme}`;
  for (const format of candidateFormats(scheme, recipe)) {
    const planned = format(weight, recipe);
    if (typeof planned === "string") reason = planned;
    else if (planned.bytes < originalBytes) return planned;
    else reason = `would have ${planned.bytes} bytes as ${planned.description}`;
  }
  return reason;
}

/** Formats of a scheme, the best first. The reason of the last one is the one to report. */
function candidateFormats(
  scheme: Recipe["scheme"],
  { operators, granularity }: Recipe,
): readonly QuantizationFormat[] {
  switch (scheme) {
    case "fp16":
      return [];
    case "int8-dynamic":
      return [dynamicMatMulFormat];
    case "int4-weight":
      return blockFormats(4, operators);
    case "int8-weight": {
      const formats = [gatherRowsFormat, dequantizeLinearFormat];
      return granularity === "block" ? [...blockFormats(8, operators), ...formats] : formats;
    }
  }
}

function blockFormats(bits: 4 | 8, operators: Recipe["operators"]): QuantizationFormat[] {
  return operators === "contrib"
    ? [matMulNBitsFormat(bits), gatherBlockQuantizedFormat(bits)]
    : [blockedDequantizeLinearFormat(bits)];
}
