import { ServiceError } from "../../contract/errors.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { type LaterText, openLaterText } from "../accuracy/open-text-samples.ts";
import { isCheckpoint } from "../language/open-language-model.ts";
import { requireTensorInputs } from "../samples/generate-sample.ts";
import { openCallerSamples, openSamples } from "../samples/open-samples.ts";
import type { RunnableModel } from "../runtime/model-session.ts";
import { type Sample, tensorNumbers } from "../runtime/tensor-data.ts";

interface CalibrationOptions {
  readonly recipe: Pick<Recipe, "calibration" | "evaluation">;
  /** The original's ONNX file, or its checkpoint. */
  readonly modelPath: string;
  /** A local `.npz` file, or text; without it, samples are generated, or a checkpoint's built in. */
  readonly calibrationPath: string | undefined;
  /** Outputs that are fetched. */
  readonly outputs: readonly string[];
  readonly signal: AbortSignal;
}

/** Samples to calibrate on, and which samples of the caller's file are the evaluation's. */
export type CalibrationSource = LaterText;

/** Generated samples of the calibration come after any that an evaluation can have. */
const firstGenerated = 4096;

/**
 * Opens samples for the recipe's calibration, none of which the evaluation uses.
 * @throws ServiceError calibration_data_invalid if the caller's data does not fit; evaluation_failed
 * if none can be generated; recipe_unsupported for a checkpoint whose tokenizer cannot be used
 */
export async function openCalibrationSamples(
  original: RunnableModel,
  options: CalibrationOptions,
): Promise<CalibrationSource> {
  const { recipe, calibrationPath } = options;
  if (recipe.calibration === undefined) throw new TypeError("The recipe has no calibration");
  const { samples } = recipe.calibration;
  const text = openLaterText(original, {
    checkpointPath: isCheckpoint(options.modelPath) ? options.modelPath : undefined,
    dataPath: calibrationPath,
    evaluationSamples: isShared(recipe) ? recipe.evaluation.samples : undefined,
    samples,
  });
  const opened = await asCalibrationError(text);
  if (opened !== undefined) return opened;
  if (calibrationPath !== undefined)
    return openCallerCalibration(original, calibrationPath, recipe);
  const source = await openSamples(original, {
    ...options,
    evaluation: { samples, firstGenerated },
  });
  return { ...source, evaluationSamples: undefined };
}

async function openCallerCalibration(
  original: RunnableModel,
  path: string,
  { calibration, evaluation }: CalibrationOptions["recipe"],
): Promise<CalibrationSource> {
  const opened = await asCalibrationError(openCallerSamples(path, requireTensorInputs(original)));
  const evaluationSamples = isShared({ calibration, evaluation })
    ? Math.min(evaluation.samples, Math.ceil(opened.count / 2))
    : undefined;
  const skipped = evaluationSamples ?? 0;
  const count = Math.min(calibration?.samples ?? 0, opened.count - skipped);
  if (count === 0) {
    await opened[Symbol.asyncDispose]();
    const problem = "has one sample, which cannot serve both the evaluation and the calibration";
    throw new ServiceError("calibration_data_invalid", `The calibration data ${problem}`);
  }
  return {
    data: "caller",
    count,
    unused: opened.count - skipped - count,
    samples: { [Symbol.asyncIterator]: () => takeFinite(opened.samples, skipped, count) },
    failureCode: "evaluation_data_invalid",
    evaluationSamples,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

/** Whether one file serves the evaluation too. */
function isShared({ calibration, evaluation }: CalibrationOptions["recipe"]): boolean {
  return evaluation.level === "outputs" && calibration?.data === evaluation.data;
}

async function* takeFinite(
  samples: AsyncIterable<Sample>,
  skipped: number,
  count: number,
): AsyncGenerator<Sample> {
  let index = 0;
  for await (const sample of samples) {
    index += 1;
    if (index <= skipped) continue;
    const tensor = sample.find((each) => tensorNumbers(each).some(Number.isNaN));
    if (tensor !== undefined) {
      const place = `Input "${tensor.name}" of sample ${index} of the calibration data`;
      throw new ServiceError("calibration_data_invalid", `${place} has NaN`);
    }
    yield sample;
    if (index === skipped + count) return;
  }
}

/** Problems of data are found where the evaluation's is read, and named after it there. */
export async function asCalibrationError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (!(cause instanceof ServiceError) || cause.code !== "evaluation_data_invalid") throw cause;
    const message = cause.message.replaceAll("evaluation data", "calibration data");
    throw new ServiceError("calibration_data_invalid", message, { cause });
  }
}
