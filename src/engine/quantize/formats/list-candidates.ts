import type { Recipe } from "../../../contract/jobs/recipe.ts";
import { lacksDotProducts, type Target } from "../../../contract/jobs/target.ts";
import type { Weight } from "../find-weights.ts";
import type { AffineFormat } from "../kernels/affine-parameters.ts";
import type { QuantizedStorage, WeightOperation } from "../weight-format.ts";
import { gathersRows } from "./consumer-matrix.ts";
import { planAffineStorage, planBlockStorage } from "./plan-storage.ts";
import { isRecurrentProduct, planRecurrentStorage } from "./quantize-lstm.ts";

export interface RecipeForTarget {
  readonly recipe: Recipe;
  readonly target: Target;
}

export type QuantizedScheme = Exclude<Recipe["scheme"], "fp16">;
type Operation = Exclude<WeightOperation, "restore">;

/** A way to store a weight, and the operations that consumers may have on it. */
export interface Candidate {
  readonly storage: QuantizedStorage | string;
  readonly operations: readonly Operation[];
  /** Operations that the scheme is about: one consumer at least must have one; absent for none. */
  readonly required?: readonly Operation[];
}

/** Candidates of a scheme, the best first. The reason of the last one is the one to report. */
export function listCandidates(
  weight: Weight,
  options: RecipeForTarget & { readonly takesRecurrent: boolean },
  scheme: QuantizedScheme,
): readonly Candidate[] {
  const { recipe } = options;
  const int8 = { type: "int8", symmetric: recipe.symmetric, reduceRange: false } as const;
  switch (scheme) {
    case "int8-dynamic": {
      const integers = chooseIntegers(options);
      const storage = planAffineStorage(weight, recipe, integers);
      const required = ["integer-product"] as const;
      const product = { storage, operations: [...required, "gather-rows"] as const, required };
      if (!options.takesRecurrent || !canQuantizeLstm(options)) return [product];
      return [...listRecurrentCandidates(weight, recipe, integers), product];
    }
    case "int4-weight":
      return listBlockCandidates(weight, recipe, 4);
    case "int8-weight": {
      const storage = planAffineStorage(weight, recipe, int8);
      const affine = { storage, operations: ["gather-rows"] as const };
      const isBlock = recipe.granularity === "block";
      return isBlock ? [...listBlockCandidates(weight, recipe, 8), affine] : [affine];
    }
  }
}

/**
 * The integers of products with uint8 activations. Without dot products, x86 processors add pairs
 * of such products in 16 bits, which saturate for int8 values beyond ±64 and never for uint8.
 */
function chooseIntegers({ recipe, target }: RecipeForTarget): AffineFormat {
  const { symmetric, reduceRange } = recipe;
  const type = !reduceRange && lacksDotProducts(target) ? "uint8" : "int8";
  return { type, symmetric, reduceRange };
}

/** ONNX Runtime has DynamicQuantizeLSTM for processors alone. */
function canQuantizeLstm({ recipe, target }: RecipeForTarget): boolean {
  return recipe.operators === "contrib" && target.executionProvider === "cpu";
}

function listRecurrentCandidates(
  weight: Weight,
  { granularity }: Recipe,
  integers: AffineFormat,
): readonly Candidate[] {
  if (!weight.consumers.some(isRecurrentProduct)) return [];
  const storage = planRecurrentStorage(weight, { granularity, integers });
  const required = ["recurrent-product"] as const;
  return [{ storage, operations: required, required }];
}

function listBlockCandidates(weight: Weight, recipe: Recipe, bits: 4 | 8): Candidate[] {
  const { blockSize, symmetric } = recipe;
  const format = { bits, blockSize, symmetric };
  const packed = planBlockStorage(weight, "packed-blocks", format);
  if (recipe.operators === "contrib") {
    const operations = ["block-product", "gather-blocks", "gather-packed-rows"] as const;
    const candidate = { storage: packed, operations };
    const linear = planBlockStorage(weight, "linear-blocks", format);
    if (typeof linear !== "string" && linear.matrices > 1) {
      return [{ storage: linear, operations: [] }];
    }
    if (!weight.consumers.every((consumer) => gathersRows(weight, consumer))) return [candidate];
    const rows = planBlockStorage(weight, "packed-rows", format);
    return [
      { ...candidate, required: operations },
      { ...candidate, storage: rows },
    ];
  }
  const linear = planBlockStorage(weight, "linear-blocks", format);
  return [
    { storage: packed, operations: ["gather-packed-rows"], required: ["gather-packed-rows"] },
    { storage: linear, operations: [] },
  ];
}
