import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { firstPlan } from "./quantize/plan-revision.ts";
import { isDeepStrictEqual } from "node:util";
import { ServiceError } from "../contract/errors.ts";
import type { Recipe } from "../contract/jobs/recipe.ts";
import { chooseRanges, fitPlan, type ModelCalibration } from "./calibrate-model.ts";
import {
  executePlan,
  reuseResults,
  type CompressOptions,
  type WrittenPlan,
} from "./execute-plan.ts";
import { type CompressionPlan, planCompression } from "./plan-compression.ts";
import { composeRecipe, type Form, languageForms, searchedForms } from "./search/forms.ts";

export interface CandidateOptions extends CompressOptions {
  readonly modelPath: string;
  readonly calibration: ModelCalibration | undefined;
  /** Folder for files that live as long as the search. */
  readonly scratch: string;
}

/** The model with every weight in one form that can have it. */
export interface WrittenForm extends WrittenPlan {
  readonly form: Form;
  /** Weights that turned out to fit no format when they were read, and why. */
  readonly rejected: ReadonlyMap<number, string>;
  /** Noise of each weight itself in this form, by its position. */
  readonly weightNoise: ReadonlyMap<number, number>;
}

/**
 * Writes the model in every form, and candidates take their weights from these.
 * @throws ServiceError nothing_to_quantize if no weight has a form
 */
export async function writeForms(
  options: CandidateOptions,
  isLanguage: boolean,
): Promise<WrittenForm[]> {
  const written: WrittenForm[] = [];
  let obstacle: unknown;
  for (const form of isLanguage ? languageForms : searchedForms) {
    try {
      const recipe = composeRecipe(options.recipe, [{ match: undefined, form }], isLanguage);
      written.push({ ...(await writeForm(recipe, options)), form });
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== "nothing_to_quantize") throw error;
      obstacle = error;
    }
  }
  if (written.length === 0) throw obstacle;
  return written;
}

async function writeForm(
  recipe: Recipe,
  options: CandidateOptions,
): Promise<Omit<WrittenForm, "form">> {
  const rejected = new Map<number, string>();
  for (;;) {
    const plan = await planCandidate(recipe, rejected, options);
    const directory = await createFolder(options.scratch);
    const { results } = await writePlan(plan, directory, options);
    const found = results.filter(({ rejection }) => rejection !== undefined);
    if (found.length === 0) {
      const weightNoise = new Map(results.map(({ weight, sums }) => [weight, sums.noise]));
      return { plan, directory, rejected, weightNoise };
    }
    for (const { weight, rejection = "" } of found) rejected.set(weight, rejection);
    await rm(directory, { recursive: true });
  }
}

/**
 * Writes a candidate for as long as it is used, with what the forms have computed.
 * @param rejected weights that stay as they are, and why
 */
export async function withCandidate<T>(
  { recipe, rejected }: { recipe: Recipe; rejected: ReadonlyMap<number, string> },
  forms: readonly WrittenForm[],
  options: CandidateOptions,
  use: (file: string, bytes: number) => Promise<T>,
): Promise<T> {
  options.signal.throwIfAborted();
  const plan = await planCandidate(recipe, rejected, options);
  const known = new Set(plan.tasks);
  for (const form of forms) {
    const missing = new Set(reuseResults(plan, form));
    for (const task of plan.tasks) if (!missing.has(task)) known.delete(task);
  }
  const directory = await createFolder(options.scratch);
  try {
    await writePlan({ ...plan, tasks: [...known] }, directory, options);
    return await use(path.join(directory, "model.onnx"), plan.resultBytes);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function planCandidate(
  recipe: Recipe,
  rejected: ReadonlyMap<number, string>,
  { modelPath, calibration, ...options }: CandidateOptions,
): Promise<CompressionPlan> {
  const planned = await planCompression(
    modelPath,
    { ...options, kind: "quantize", recipe },
    {
      ...firstPlan,
      rejected,
      ranges: calibration ? chooseRanges(calibration, "minmax") : firstPlan.ranges,
    },
  );
  return fitPlan(planned, calibration);
}

async function createFolder(scratch: string): Promise<string> {
  const directory = path.join(scratch, randomUUID());
  await mkdir(directory);
  return directory;
}

async function writePlan(plan: CompressionPlan, directory: string, options: CandidateOptions) {
  const silent = { onProgress: () => undefined, log: () => undefined };
  return executePlan(plan, new Map(), { ...options, ...silent, outputDirectory: directory });
}

/** Whether two forms make the same of a weight. */
export function isSameFormat(a: WrittenForm, b: WrittenForm, weight: number): boolean {
  const [first, second] = [a, b].map(({ plan }) => plan.weights[weight]?.format);
  return isDeepStrictEqual(first, second);
}
