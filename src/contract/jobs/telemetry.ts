import { z } from "zod";
import { latency, measuredRatio } from "./latency.ts";
import { shortModelDiff } from "./model-diff.ts";
import { rangeMethods } from "./recipe.ts";
import { searchSummary } from "./search.ts";
import { textLimits } from "../limits.ts";
import { sha256 } from "../models/model.ts";
import { listCodes } from "../text/describe-choices.ts";
import { shownLine } from "../text/shown-line.ts";
import { warningTable } from "./warnings.ts";

/**
 * SQNR of identical outputs, dB; float32 cannot express a smaller error. Its negative is the SQNR
 * of outputs that are not finite.
 */
export const maxSqnrDb = 150;

/** Most outputs that telemetry has the accuracy of. */
export const maxReportedOutputs = 64;

/** Most warnings of a job. */
export const maxWarnings = 64;

const sqnrDb = z.number().min(-maxSqnrDb).max(maxSqnrDb);
const cosine = z.number().min(-1).max(1);

const outputAccuracy = z.object({
  name: shownLine(textLimits.name).describe(
    `Cut where it has more than ${textLimits.name} characters.`,
  ),
  sqnrDb: sqnrDb.describe(
    `Signal to quantization noise ratio over all samples, dB; ${maxSqnrDb} for identical outputs.`,
  ),
  cosine: cosine.describe("Cosine similarity over all samples."),
  maxAbsoluteError: z
    .number()
    .min(0)
    .max(1e155)
    .nullable()
    .describe(
      "Largest difference of two elements; null where one of them is not finite, or its square.",
    ),
  top1Agreement: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .describe(
      "Share of samples whose largest element is the same along the last axis; null for " +
        "outputs without such an axis.",
    ),
});
export type OutputAccuracy = z.infer<typeof outputAccuracy>;

const languageAccuracy = z.object({
  tokens: z.int().min(1).describe("Tokens that were predicted: all but the first of each window."),
  windowTokens: z
    .int()
    .min(1)
    .describe("Tokens of the longest window. A window is read at once, after nothing."),
  originalPerplexity: measuredRatio.describe(
    "Perplexity of the original: among how many tokens it hesitates at each.",
  ),
  resultPerplexity: measuredRatio.describe("Perplexity of the result."),
  perplexityRatio: measuredRatio.describe("resultPerplexity / originalPerplexity."),
  klDivergence: measuredRatio.describe(
    "Mean Kullback-Leibler divergence of the result's prediction of the next token from the " +
      "original's, nats; 0 for equal predictions.",
  ),
});

export const accuracy = z.object({
  level: z
    .enum(["outputs", "weights"])
    .describe("What was compared: outputs of both models, or each weight with its original."),
  data: z
    .enum(["caller", "generated", "builtin"])
    .describe(
      "Where the samples came from; `builtin` is a text that the service has for language models. " +
        "Figures on generated data show gross damage only.",
    ),
  dataSha256: sha256
    .optional()
    .describe("Of the caller's file of samples; absent where they came from elsewhere."),
  samples: z
    .int()
    .min(0)
    .describe("Samples that the outputs were compared on; 0 at level `weights`."),
  sqnrDb: sqnrDb.describe("Of the worst output, or of the worst weight at level `weights`."),
  cosine: cosine.describe("Of the worst output, or of the worst weight at level `weights`."),
  outputs: z.array(outputAccuracy).max(maxReportedOutputs),
  language: languageAccuracy
    .optional()
    .describe(
      "How well both predict the next token of text; absent for models that are not language " +
        "models, and where logits are not finite. How often both expect the same next token is " +
        "`top1Agreement` of the output `logits`.",
    ),
  notExercised: z
    .array(shownLine(textLimits.name))
    .max(maxReportedOutputs)
    .optional()
    .describe(
      "Outputs of the original that hardly differ between samples, such as a detector's that " +
        "finds nothing: the other figures leave them out, since an error of theirs says nothing.",
    ),
});
export type Accuracy = z.infer<typeof accuracy>;

const generatedInput = z.object({
  name: shownLine(textLimits.name).describe("Of the input."),
  content: shownLine(200).describe(
    "What its values are, such as `text on pages and photographs, -1 to 1`.",
  ),
  shapes: z.array(shownLine(200)).max(4).describe("Shapes, such as `1 × 3 × 256 × 256`."),
});
export type GeneratedInput = z.infer<typeof generatedInput>;

/** Nodes that telemetry names of those with QuantizeLinear and DequantizeLinear of no use. */
export const maxUnfusedNodes = 16;

const qdq = z.object({
  runtime: shownLine(64).describe("Of `recipe.dialect`."),
  operators: z.int().min(0).describe("Operators that it computes in integers."),
  unfusedNodes: z
    .int()
    .min(0)
    .describe("Nodes around which it runs QuantizeLinear and DequantizeLinear by themselves."),
  unfused: z
    .array(
      z.object({
        node: shownLine(textLimits.name).describe("Its name."),
        operator: shownLine(textLimits.name).describe("Its operator."),
        reason: shownLine(textLimits.telemetryWarning).describe("Why it is not in integers."),
      }),
    )
    .max(maxUnfusedNodes)
    .describe("The first of them; `report.json` has all."),
});

/** Of a worker, which works for a week at most and is tried again a few times. */
export const maxSeconds = 1e8;
const seconds = z.number().min(0).max(maxSeconds);

/** What a job takes of its machine, as it was forecast and as it was measured. */
export const jobCosts = z.object({
  peakMemoryBytes: z
    .int()
    .min(0)
    .describe("Most resident memory, bytes, of all processes of the job together, Node's too."),
  diskBytes: z
    .int()
    .min(0)
    .describe("Most bytes of files in the job's scratch folder, the fetched model's too."),
  seconds: seconds
    .optional()
    .describe(
      "From the worker's start to its last file. A forecast is what earlier jobs of the same model, " +
        "target and recipe took here, for each byte; absent where there are none.",
    ),
});
export type JobCosts = z.infer<typeof jobCosts>;

const peakMemory = "Peak resident memory, bytes, that running";
const peakMemoryScope =
  " takes: the model, its inputs and outputs, without Node and the runtime themselves, but with " +
  "CUDA's libraries where it is run on a GPU. Absent for a model that does not fit into the " +
  "available memory and was run in stages.";
const gpuMemory = "Memory of the GPU, bytes, that ONNX Runtime has taken after running";
const gpuMemoryScope =
  " on the samples: weights, values between operators and work space, without CUDA's context. " +
  "What other programs on the GPU take meanwhile counts too. Absent where it is not known.";

/** Not an enum, since warnings of other versions are read too. */
const warningCode = shownLine(textLimits.reason).describe(
  `Stable code, such as ${listCodes(warningTable)}.`,
);

const stageSeconds = z.object({
  fetch: seconds.describe("Fetching the model and the evaluation data."),
  shard: seconds.describe("Reading the model's graph and dividing its weights."),
  optimize: seconds.describe("Choosing formats and writing the result."),
  evaluate: seconds.describe("Running and comparing original and result."),
  publish: seconds.describe("Storing the files of the result."),
});

/** The stages of a worker. */
export const stageName = stageSeconds.keyof();
export type StageName = z.infer<typeof stageName>;

/** A stage that ended when its event was reported. */
export const endedStage = z.object({
  name: stageName,
  seconds: seconds.describe("From its start to its end, other stages within it too."),
});
export type EndedStage = z.infer<typeof endedStage>;

/**
 * Measured facts of a job. What is not measured yet, or not at the recipe's evaluation level, is
 * absent.
 */
export const telemetry = z
  .object({
    progress: z
      .object({
        fraction: z.number().min(0).max(1).describe("Share of the whole job that is done."),
        message: shownLine(textLimits.progressMessage).optional().describe("What is being done."),
      })
      .describe("How far the work is."),
    size: z
      .object({
        originalBytes: z.int().min(0).describe("Of the original."),
        resultBytes: z.int().min(0).describe("Of the result."),
        ratio: measuredRatio.describe("resultBytes / originalBytes."),
        predicted: z
          .boolean()
          .default(false)
          .describe(
            "True where the figures are the plan's and nothing was written. They are exact " +
              "unless a weight has values that the scheme cannot represent.",
          ),
      })
      .optional()
      .describe("Bytes on disk of the ONNX file and its external data."),
    forecast: jobCosts
      .optional()
      .describe(
        "What the whole job takes, a dry run's too: the most that the last jobs of the same model, " +
          "target and recipe took, or else what the plan says before any weight is read; of a job " +
          "of several pods what the last of them takes, without its time. Absent with " +
          "`recipe.auto` or `recipe.calibration`.",
      ),
    usage: jobCosts
      .optional()
      .describe(
        "What the job, or the last of its pods, took, to compare with the forecast; absent in a " +
          "dry run.",
      ),
    weights: z
      .object({
        total: z
          .int()
          .min(0)
          .describe(
            "Weights that the report lists: those of the model, without those that became part of " +
              "others, such as a batch normalization's of a convolution's.",
          ),
        quantized: z
          .int()
          .min(0)
          .describe(
            "Weights that the recipe changed; the report says what was done to each and why.",
          ),
        quantizedBytes: z.int().min(0).describe("Bytes of those weights in the original."),
        choice: shownLine(1000)
          .optional()
          .describe(
            "What weights have, and why, where none has the form that the recipe asks for first, " +
              "since none can have it, or operators that take it are not faster.",
          ),
      })
      .optional()
      .describe("How many weights were changed."),
    generated: z
      .array(generatedInput)
      .max(16)
      .optional()
      .describe("What was generated to run the models on; absent for the caller's data."),
    calibration: z
      .object({
        data: z.enum(["caller", "generated", "builtin"]).describe("Where the samples came from."),
        samples: z.int().min(1).describe("Samples that activations were observed on."),
        evaluationSamples: z
          .int()
          .min(1)
          .optional()
          .describe(
            "Samples at the beginning of the same file that are the evaluation's, where one file " +
              "serves both.",
          ),
        method: z
          .enum(rangeMethods)
          .optional()
          .describe(
            "How ranges of activations followed from what was observed: the best way where the " +
              "recipe says `auto`. Absent where none are needed.",
          ),
        correctsBiases: z
          .boolean()
          .optional()
          .describe(
            "True where what rounding changes on average is subtracted from biases, since the " +
              "result has a higher SQNR so.",
          ),
        fittedWeights: z
          .int()
          .min(0)
          .describe(
            "Weights whose rounding, whose inputs' ranges or scales, or the biases beside which " +
              "were fitted to them.",
          ),
      })
      .optional()
      .describe("What the original was run on to fit the result to; absent without calibration."),
    qdq: qdq.optional().describe("How the runtime takes what `int8-static` quantized in advance."),
    search: searchSummary
      .optional()
      .describe("How the recipe was found, where `recipe.auto` asks for it; `report.json` has it."),
    accuracy: accuracy.optional().describe("How far the result is from the original."),
    latency: latency.optional().describe("How long the models take for one sample."),
    memory: z
      .object({
        originalPeakBytes: z.int().min(0).describe(`${peakMemory} the original${peakMemoryScope}`),
        resultPeakBytes: z.int().min(0).describe(`${peakMemory} the result${peakMemoryScope}`),
        originalGpuBytes: z.int().min(0).describe(`${gpuMemory} the original${gpuMemoryScope}`),
        resultGpuBytes: z.int().min(0).describe(`${gpuMemory} the result${gpuMemoryScope}`),
        workerPeakBytes: z
          .int()
          .min(0)
          .describe(
            "Peak resident memory of the worker that compressed the model, bytes, with Node.",
          ),
      })
      .partial()
      .optional()
      .describe("Memory that the models and the work took."),
    device: z
      .object({
        executionProvider: shownLine(64).describe(
          "ONNX Runtime execution provider that ran the models, such as `cpu`.",
        ),
        name: shownLine(200).describe("Processor that ran the evaluation."),
        cores: z.int().min(0).optional().describe("Processors that the worker could use."),
        instructionSets: z
          .array(shownLine(32))
          .max(32)
          .optional()
          .describe("Instruction sets that matter to inference, such as `avx512_vnni`; on Linux."),
        threads: z.int().min(0).describe("Threads that a model was run on."),
        runtime: shownLine(200).describe("Name and version of the runtime."),
      })
      .optional()
      .describe("What ran the evaluation."),
    modelDiff: shortModelDiff
      .optional()
      .describe(
        "How the original differs from the baseline's original, the start of what `diff.json` " +
          "has; absent where there is no baseline that describes its own.",
      ),
    stageSeconds: stageSeconds
      .partial()
      .optional()
      .describe("Seconds that the worker spent in each stage."),
    warnings: z
      .array(
        z.object({
          code: warningCode,
          message: shownLine(textLimits.telemetryWarning).describe("The same for people."),
        }),
      )
      .max(maxWarnings)
      .describe("What to know about the result."),
  })
  .meta({ id: "Telemetry" });
export type Telemetry = z.infer<typeof telemetry>;
