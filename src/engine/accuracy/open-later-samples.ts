import { type LaterSamples, openLaterText } from "./open-text-samples.ts";
import { ServiceError } from "../../contract/errors.ts";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { requireTensorInputs } from "../samples/generate-sample.ts";
import { evaluationDataInvalidError } from "../samples/npy-arrays.ts";
import { openCallerSamples, openSamples } from "../samples/open-samples.ts";
import type { RunnableModel } from "../runtime/model-session.ts";
import { type Sample, tensorNumbers } from "../runtime/tensor-data.ts";

interface LaterOptions {
  /** The original's ONNX file. */
  readonly modelPath: string;
  /** The checkpoint that it was written from, which has its tokenizer. */
  readonly checkpointPath: string | undefined;
  /** A local `.npz` file, or text; without it generated samples or, for tokens, built-in text. */
  readonly dataPath: string | undefined;
  /** Samples that the evaluation has of the same file at most; undefined where it has none. */
  readonly evaluationSamples: number | undefined;
  /** Most samples. */
  readonly samples: number;
  /** Outputs that are fetched. */
  readonly outputs: readonly string[];
  readonly signal: AbortSignal;
}

/** Generated samples come after any that an evaluation can have. */
const firstGenerated = 4096;

/**
 * Opens samples for what comes before the evaluation, none of which it uses: a calibration, or a
 * search for a recipe.
 * @throws ServiceError evaluation_data_invalid if the caller's data does not fit; evaluation_failed
 * if none can be generated; recipe_unsupported for a checkpoint whose tokenizer cannot be used
 */
export async function openLaterSamples(
  original: RunnableModel,
  options: LaterOptions,
): Promise<LaterSamples> {
  const { dataPath, samples } = options;
  const text = await openLaterText(original, options);
  if (text !== undefined) return text;
  if (dataPath !== undefined) return openLaterArrays(original, { ...options, dataPath });
  const evaluation = { samples, firstGenerated };
  const source = await openSamples(original, { ...options, evaluation });
  return { ...source, evaluationSamples: undefined };
}

/** Samples of a file that serves the evaluation too, as the evaluation's; undefined for another. */
export function findSharedSamples({
  calibration,
  evaluation,
}: Pick<Recipe, "calibration" | "evaluation">): number | undefined {
  const isShared = evaluation.level === "outputs" && calibration?.data === evaluation.data;
  return isShared ? evaluation.samples : undefined;
}

async function openLaterArrays(
  original: RunnableModel,
  { dataPath, evaluationSamples: wanted, samples }: LaterOptions & { readonly dataPath: string },
): Promise<LaterSamples> {
  const opened = await openCallerSamples(dataPath, requireTensorInputs(original));
  const evaluationSamples = wanted && Math.min(wanted, Math.ceil(opened.count / 2));
  const skipped = evaluationSamples ?? 0;
  const count = Math.min(samples, opened.count - skipped);
  if (count === 0) {
    await opened[Symbol.asyncDispose]();
    const problem = "has one sample, which cannot serve both the evaluation and what comes before";
    throw evaluationDataInvalidError(`The evaluation data ${problem}`);
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
      const place = `Input "${tensor.name}" of sample ${index} of the evaluation data`;
      throw evaluationDataInvalidError(`${place} has NaN`);
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
