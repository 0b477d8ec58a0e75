import { z } from "zod";
import { auto } from "./auto.ts";
import { dnsLabel } from "../text/kubernetes-names.ts";
import { balance, maxPipelineStages } from "./pipeline.ts";
import { type Rule, withRules } from "../rule.ts";
import { boundedText } from "../text/bounded-text.ts";
import { modelSource } from "../models/model-source.ts";

const quantizedSchemes = ["int8-dynamic", "int8-weight", "int4-weight"] as const;
const schemes = [...quantizedSchemes, "int8-static", "fp16"] as const;
const granularities = ["tensor", "channel", "block"] as const;

export const schemeName = z.enum(schemes);
type Scheme = z.infer<typeof schemeName>;
type Granularity = (typeof granularities)[number];

/** The granularities that each scheme can have. */
export const granularitiesByScheme: Readonly<Record<Scheme, readonly Granularity[]>> = {
  "int8-dynamic": ["tensor", "channel"],
  "int8-static": ["tensor", "channel"],
  "int8-weight": granularities,
  "int4-weight": ["block"],
  fp16: granularities,
};

/** Pods that can work on one job at once. */
const maxParallelism = 64;

/** A recipe's granularity, or the finest of a scheme that cannot have it. */
export function chooseGranularity(scheme: Scheme, wanted: Granularity): Granularity {
  const allowed = granularitiesByScheme[scheme];
  return allowed.includes(wanted) ? wanted : (allowed.at(-1) ?? wanted);
}

/**
 * A recipe's fields with another scheme: its granularity is one that the scheme can have, and what
 * the scheme has no use for is undefined.
 */
export function changeScheme(fields: PartialRecipe, scheme: Scheme): PartialRecipe {
  const { granularity: wanted, calibration } = fields;
  const granularity = wanted && chooseGranularity(scheme, wanted);
  return {
    ...fields,
    granularity,
    calibration: scheme === "fp16" ? undefined : calibration,
    auto: undefined,
  };
}

const blockSize = z.literal([16, 32, 64, 128, 256]);
const offsets = z.enum(["none", "source", "all"]);

/** Longest pattern of names, characters. */
export const maxPatternLength = 253;

const nodePattern = boundedText({ min: 1, max: maxPatternLength });

const override = z.strictObject({
  match: nodePattern.describe("Names of weights, or of nodes that take them, as in `exclude`."),
  scheme: z
    .enum([...quantizedSchemes, "none"])
    .describe(
      "Scheme of these weights, with the recipe's granularity where it can have that, else " +
        "its finest; `none` leaves them unchanged.",
    ),
  granularity: z
    .enum(granularities)
    .optional()
    .describe("Granularity of these weights, where the scheme can have it."),
  blockSize: blockSize.optional().describe("Weights that share a scale, of these weights."),
  offsets: offsets
    .optional()
    .describe("Which of these weights have offsets of blocks; without it `none`."),
});
export type Override = z.infer<typeof override>;

const sharding = z.strictObject({
  maxShardBytes: z
    .int()
    .min(65_536)
    .describe(
      "Largest weight shard, bytes. A tensor is never split: one that is larger gets a shard " +
        "of its own.",
    ),
  stages: z
    .int()
    .min(1)
    .max(maxPipelineStages)
    .optional()
    .describe(
      "Cuts the result into a pipeline of so many stages, each an ONNX model of its own. " +
        "Without it, as many as `maxStageBytes` needs; without both, there is no pipeline.",
    ),
  maxStageBytes: z
    .int()
    .min(1024)
    .optional()
    .describe("Most bytes of weights in a stage, such as a device's memory."),
  balance,
});

const evaluation = z.strictObject({
  level: z
    .enum(["outputs", "weights", "none"])
    .describe(
      "`outputs` runs original and result and compares; `weights` measures each weight's " +
        "error only; `none` measures sizes only.",
    ),
  data: modelSource
    .optional()
    .describe(
      "`.npz` file with an array for each input, stacked along a first axis of samples; for a " +
        "language model also text in UTF-8, or lines of JSON, each with `text` or `input_ids`. " +
        "Without it, data is generated to the inputs' types and shapes, and a language model's " +
        "checkpoint is run on a text that the service has.",
    ),
  samples: z
    .int()
    .min(1)
    .max(1024)
    .describe("Samples to compare outputs on; of text, windows of up to 512 tokens."),
  latencyBudgetSeconds: z
    .number()
    .min(0)
    .max(3600)
    .describe(
      "Seconds for which both models are timed at most, less where the ratio of their latencies " +
        "is known well before. Two sessions of each are timed whatever it is; at 0 nothing is.",
    ),
  minCosine: z
    .number()
    .min(-1)
    .max(1)
    .describe(
      "Least cosine similarity of any output. Below it the job fails on the caller's data, " +
        "and completes with a warning on generated data or the built-in text.",
    ),
});

/** Runtimes whose QuantizeLinear and DequantizeLinear `int8-static` writes. */
export const dialectNames = ["cpu", "browser", "tensorrt", "qnn", "openvino"] as const;
export type DialectName = (typeof dialectNames)[number];

/** Those whose runtime has ONNX Runtime's own operators. */
export const contribDialects: readonly DialectName[] = ["cpu", "browser"];

/** Whether a recipe's result is for a runtime that is not the one here, and is not timed. */
export function isForOtherRuntime({ scheme, dialect = "cpu" }: Recipe): boolean {
  return scheme === "int8-static" && dialect !== "cpu";
}

/** How a range follows from the values that were observed. */
export const rangeMethods = ["minmax", "percentile", "entropy", "mse"] as const;
export type RangeMethod = (typeof rangeMethods)[number];

const calibration = z.strictObject({
  data: modelSource
    .optional()
    .describe(
      "Samples as in `evaluation.data`. Where both name the same file, the evaluation has the " +
        "first samples and the calibration those after them.",
    ),
  generated: z
    .boolean()
    .describe(
      "Calibrates on generated samples instead, which `telemetry.calibration` and a warning say: " +
        "the result fits what was generated.",
    ),
  samples: z.int().min(1).max(4096).describe("Samples to observe activations on, at most."),
  method: z
    .enum(["auto", ...rangeMethods])
    .describe(
      "Ranges of activations for `int8-static`: `minmax` to the largest value, `percentile` " +
        "without 0.001 % of the values at each end, `entropy` as TensorRT's calibration, `mse` with " +
        "the least squared error. `auto` takes the one whose result has the highest SQNR.",
    ),
});

/** What to do to the model. Fields missing in a request come from the target's default recipe. */
export const recipe = z
  .strictObject({
    scheme: schemeName.describe(
      "`int8-dynamic`: weights and activations in int8, activations scaled at run time " +
        "(MatMul, Gemm; LSTM where `operators` is `contrib`). `int8-static`: the same for Conv, " +
        "MatMul and Gemm, with scales of activations from `calibration`. `int8-weight` and " +
        "`int4-weight`: weights stored in 8 or 4 bits, arithmetic in floating point, " +
        "except for products that are faster with activations " +
        "rounded to int8 for each block. `fp16`: half precision.",
    ),
    granularity: z
      .enum(granularities)
      .describe(
        "One scale for each tensor, each output channel, or each block of `blockSize` weights " +
          "along the reduced axis.",
      ),
    blockSize: blockSize.describe("Weights that share a scale where granularity is `block`."),
    offsets: offsets
      .optional()
      .describe(
        "Which weights of a language model's checkpoint have an offset for each block of 4 bits " +
          "besides, which products multiply by the sum of the block's inputs. `source`: those " +
          "that are 4 bits with offsets in the checkpoint (GGUF's Q4_1 and Q4_K): they stay what " +
          "they were, in the checkpoint's blocks and also where the scheme is `int8-weight`. " +
          "`all`: all that are `int4-weight`. Without it `none`. For `operators` `contrib`.",
      ),
    symmetric: z.boolean().describe("Zero maps to the middle code and no zero points are stored."),
    reduceRange: z
      .boolean()
      .describe(
        "7-bit weights for `int8-dynamic`, exact on x86 CPUs without VNNI, whose int8 " +
          "products saturate. Without it, targets whose `instructionSets` have no dot products " +
          "of 8-bit integers get uint8 weights, which are exact there too.",
      ),
    operators: z
      .enum(["standard", "contrib"])
      .describe(
        "`standard` uses only the ONNX operator set; `contrib` may use ONNX Runtime's own " +
          "operators (MatMulNBits, GatherBlockQuantized, DynamicQuantizeLSTM).",
      ),
    dialect: z
      .enum(dialectNames)
      .optional()
      .describe(
        "Runtime that `int8-static` places QuantizeLinear and DequantizeLinear for: ONNX Runtime on " +
          "CPUs (`cpu`) or in browsers (WebAssembly), TensorRT, Qualcomm's QNN, OpenVINO. " +
          "Without it `cpu`. Results for others are run by ONNX Runtime here, and not timed.",
      ),
    dequantize: z
      .enum(["load", "load-only", "run"])
      .describe(
        "When weights become floating point again, where no operator takes them quantized. " +
          "`load`: once, as the runtime loads the model; it is as fast as the original and takes " +
          "as much memory. `load-only`: the same, also where an operator could take them: all " +
          "arithmetic is in floating point, and nothing is timed. `run`: each time that they are used " +
          "(DequantizeLinear), which takes less memory and more time.",
      ),
    fallback: z
      .enum(["none", "int8-weight"])
      .describe("Scheme for weights that `scheme` cannot represent; `none` leaves them unchanged."),
    exclude: z
      .array(nodePattern)
      .max(256)
      .describe(
        "Names of weights to leave unchanged, or of nodes that take them, also past nodes that " +
          "only move elements, such as Transpose; `*` stands for any characters.",
      ),
    overrides: z
      .array(override)
      .max(256)
      .optional()
      .describe(
        "Other schemes for some weights, such as 8 bits for the head of a language model in 4 " +
          "bits. The first entry that matches a weight decides; `exclude` comes before them all.",
      ),
    minElements: z.int().min(0).describe("Weights with fewer elements are left unchanged."),
    parallelism: z
      .int()
      .min(1)
      .max(maxParallelism)
      .describe(
        "Pods that optimize the weights at once, for `compress` in a cluster: one pod shards " +
          "the model, so many optimize a share each, and one assembles and evaluates the " +
          "result. With 1 a single pod does it all. Without meaning on one machine, where " +
          "worker threads share the work.",
      ),
    sharding: sharding.describe("How the result is divided into files, for `compress`."),
    calibration: calibration
      .optional()
      .describe(
        "Runs the original on samples: fits the rounding of weights in blocks to the inputs of " +
          "their products (GPTQ), smooths what products of `int8-dynamic` take from normalizations " +
          "(SmoothQuant), corrects biases beside rounded weights, and finds the ranges of " +
          "activations for `int8-static`, which needs it. Without it, weights are rounded to the " +
          "nearest code.",
      ),
    auto: auto
      .optional()
      .describe(
        "Searches the scheme of each weight for a goal: the report has the recipe that was " +
          "found. The recipe's own scheme, granularity and operators have no meaning then.",
      ),
    evaluation: evaluation.describe("How the result is compared with the original."),
  })
  .meta({ id: "Recipe" });
export type Recipe = z.infer<typeof recipe>;
export type Calibration = z.infer<typeof calibration>;
export type Evaluation = z.infer<typeof evaluation>;

const partialShape = recipe.partial().shape;

/** A recipe as callers and targets write it: any part of it. */
export const partialRecipe = z
  .strictObject({
    ...partialShape,
    sharding: sharding
      .partial()
      .optional()
      .describe("How the result is divided into files, for `compress`."),
    calibration: calibration
      .partial()
      .optional()
      .describe("On which samples the rounding of weights and of activations is fitted."),
    auto: auto.partial().optional().describe("Searches the scheme of each weight for a goal."),
    evaluation: evaluation
      .partial()
      .optional()
      .describe("How the result is compared with the original."),
  })
  .meta({ id: "PartialRecipe" });
export type PartialRecipe = z.infer<typeof partialRecipe>;

export const presetName = dnsLabel;

const recipeRules = schemes
  .filter((scheme) => granularitiesByScheme[scheme].length < granularities.length)
  .map((scheme): Rule<PartialRecipe> => {
    const allowed = granularitiesByScheme[scheme];
    return {
      field: "granularity",
      message: `must be ${allowed.join(" or ")} for the scheme ${scheme}`,
      isMet: (recipe) =>
        recipe.scheme !== scheme ||
        recipe.granularity === undefined ||
        allowed.includes(recipe.granularity),
      cel:
        `self.?scheme.orValue('') != '${scheme}' || self.?granularity.orValue('${allowed[0]}') ` +
        `in ['${allowed.join("', '")}']`,
    };
  });

/** A recipe in a request: a preset of the target, and fields that override it. */
export const requestedRecipe = withRules(
  z.strictObject({
    preset: presetName
      .optional()
      .describe("Name of one of the target's presets; the other fields override it."),
    ...partialRecipe.shape,
  }),
  recipeRules,
).meta({ id: "RequestedRecipe" });
export type RequestedRecipe = z.infer<typeof requestedRecipe>;
