import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { ServiceError } from "../contract/errors.ts";
import { type Goals, goalNames, goals } from "../contract/jobs/auto.ts";
import { type Recipe, type RequestedRecipe, requestedRecipe } from "../contract/jobs/recipe.ts";
import {
  effectiveRecipe,
  findTarget,
  requireSupportedRecipe,
} from "../contract/jobs/resolve-recipe.ts";
import { builtinTargets } from "../contract/jobs/target.ts";
import { parseInput } from "../contract/parse-input.ts";
import { createCandidateRunner, runsCandidates } from "../engine/candidate-runner.ts";
import { compressModel } from "../engine/compress-model.ts";
import type { CompressionReport } from "../engine/compression-report.ts";
import { evaluateModels } from "../engine/evaluate-models.ts";
import { languageFiles } from "../engine/language/language-files.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import { writeRunnableOriginal } from "../engine/language/runnable-original.ts";
import { explainUntimed } from "../engine/quantize/dialects.ts";
import { errorMessage } from "../log/error-message.ts";
import {
  addMeasured,
  type Evaluation,
  shareSamples,
  weightAccuracy,
} from "../worker/evaluate-result.ts";
import { summarizeResult } from "../worker/finish-job.ts";
import { writeLanguageFiles } from "../worker/language-result.ts";

export const usage = `Usage: npm run compress -- MODEL --out FOLDER [OPTION]...

MODEL is an ONNX file, a GGUF file, or the config.json of a checkpoint's folder.
--out FOLDER        where the result goes: an empty folder, or none yet
--target NAME       ${builtinTargets.map(({ name }) => name).join(", ")}; by default cpu
--recipe FILE       JSON with fields of a recipe, over those of the target
--data FILE         samples for the evaluation, and for the calibration of the recipe
--goal NAME=NUMBER  a goal, also several: ${goalNames.join(", ")}`;

interface Output {
  readonly signal: AbortSignal;
  readonly onProgress: (fraction: number, message: string) => void;
  readonly log: (line: string) => void;
}

/**
 * Compresses and evaluates a file as a job does. The folder has the result and its report when it
 * returns, and is as it was where it throws.
 * @throws ServiceError that names what is wrong with an argument; those of compressModel and
 * evaluateModels
 */
export async function compressFile(args: readonly string[], output: Output): Promise<void> {
  const { modelPath, folder, dataPath, recipe, target } = await readArguments(args);
  // What its result needs beside the model is there, or no work is begun.
  if (isCheckpoint(modelPath)) await languageFiles(modelPath, target.executionProvider);
  const existed = await checkFolder(folder);
  await mkdir(folder, { recursive: true });
  const scratch = await mkdtemp(path.join(folder, ".compress-"));
  try {
    const work = { modelPath, dataPath, recipe, target, scratch };
    const report = await compress(work, output);
    const evaluation = await evaluate(work, report, output);
    const { calibration, choice, weights, search, foundRecipe, qdq } = report;
    const found = { foundRecipe, search, calibration, choice, qdq, weights };
    const content = { recipe, ...found, ...evaluation };
    const result = path.join(scratch, "result");
    await writeLanguageFiles(modelPath, target.executionProvider, result);
    await writeFile(path.join(result, "report.json"), `${JSON.stringify(content, null, 2)}\n`);
    if (foundRecipe !== undefined) {
      // It is run again with `--data` too.
      const withoutData = (key: string, value: unknown) => (key === "data" ? undefined : value);
      const text = `${JSON.stringify(foundRecipe, withoutData, 2)}\n`;
      await writeFile(path.join(result, "recipe.json"), text);
    }
    output.signal.throwIfAborted();
    for (const name of await readdir(result)) {
      await rename(path.join(result, name), path.join(folder, name));
    }
    for (const line of summarizeResult(report, evaluation)) output.log(line);
    await rm(scratch, { recursive: true });
  } catch (error) {
    await rm(existed ? scratch : folder, { recursive: true, force: true });
    throw error;
  }
}

function badArgument(message: string, cause?: unknown): ServiceError {
  return new ServiceError("validation_failed", message, { cause });
}

async function readArguments(args: readonly string[]) {
  const { values, positionals } = parseArguments(args);
  const [modelPath, ...others] = positionals;
  if (modelPath === undefined) throw badArgument("The model's file is missing");
  if (others.length > 0)
    throw badArgument(`One model is compressed, and "${others[0]}" is another`);
  if (values.out === undefined) throw badArgument("--out is missing, the folder of the result");
  await checkFile("The model", modelPath);
  if (values.data !== undefined) await checkFile("--data", values.data);
  const target = findTarget(builtinTargets, values.target);
  const requested = addGoals(await readRecipe(values.recipe), readGoals(values.goal ?? []));
  const recipe = nameData(effectiveRecipe(target, requested), values.data);
  requireSupportedRecipe(recipe, target);
  return { modelPath, folder: path.resolve(values.out), dataPath: values.data, recipe, target };
}

function parseArguments(args: readonly string[]) {
  const option = { type: "string" } as const;
  const options = {
    out: option,
    target: { type: "string", default: "cpu" },
    recipe: option,
    data: option,
    goal: { ...option, multiple: true },
  } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw badArgument(errorMessage(error), error);
  }
}

async function checkFile(what: string, file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() !== true) throw badArgument(`${what} is "${file}", which is not a file`);
}

async function readRecipe(file: string | undefined) {
  if (file === undefined) return undefined;
  await checkFile("--recipe", file);
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw badArgument(`--recipe "${file}" is not JSON: ${errorMessage(error)}`, error);
  }
  const { data, problems } = parseInput(requestedRecipe, content);
  if (problems === undefined) {
    if (data.calibration?.data === undefined && data.evaluation?.data === undefined) return data;
    throw badArgument(`--recipe "${file}" names data that a service fetches: samples are --data`);
  }
  const [problem] = problems;
  const field = problem?.path.join(".") ?? "";
  throw badArgument(`--recipe "${file}": ${field} ${problem?.message ?? ""}`);
}

/** The recipe with the file of samples as the data of its calibration, and of its evaluation. */
function nameData(recipe: Recipe, dataPath: string | undefined): Recipe {
  const { calibration, evaluation } = recipe;
  if (dataPath === undefined || calibration === undefined || calibration.generated) return recipe;
  const data = pathToFileURL(dataPath).href;
  return { ...recipe, calibration: { ...calibration, data }, evaluation: { ...evaluation, data } };
}

/** Goals such as `minSqnrDb=30`. */
function readGoals(texts: readonly string[]): Goals {
  const entries = texts.map((text) => {
    const [name = "", value = "", ...rest] = text.split("=");
    if (!goalNames.some((known) => known === name)) {
      throw badArgument(
        `--goal "${text}" is not one of ${goalNames.join(", ")}, such as minSqnrDb=30`,
      );
    }
    if (value.trim() === "" || rest.length > 0 || Number.isNaN(Number(value))) {
      throw badArgument(`--goal "${text}" has to be ${name}= and a number`);
    }
    return [name, Number(value)] as const;
  });
  const { data, problems } = parseInput(goals, Object.fromEntries(entries));
  if (problems === undefined) return data;
  const [problem] = problems;
  throw badArgument(`--goal ${problem?.path.join(".") ?? ""} ${problem?.message ?? ""}`);
}

/** A size alone is reached with the least loss. */
function addGoals(recipe: RequestedRecipe | undefined, wanted: Goals): RequestedRecipe | undefined {
  const { maxBytes, ...accuracy } = wanted;
  if (Object.keys(wanted).length === 0) return recipe;
  const isSizeOnly = maxBytes !== undefined && Object.keys(accuracy).length === 0;
  const auto = { ...(isSizeOnly && { minimize: "loss" as const }), ...recipe?.auto, ...wanted };
  return { ...recipe, auto };
}

/** Whether the folder is there. */
async function checkFolder(folder: string): Promise<boolean> {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined) return false;
  if (!found.isDirectory()) throw badArgument(`--out is "${folder}", which is not a folder`);
  const [first] = await readdir(folder);
  if (first === undefined) return true;
  throw badArgument(`--out is "${folder}", which has files such as "${first}": give an empty one`);
}

type Work = Pick<
  Awaited<ReturnType<typeof readArguments>>,
  "modelPath" | "dataPath" | "recipe" | "target"
> & {
  readonly scratch: string;
};

async function compress(
  { modelPath, dataPath, recipe, target, scratch }: Work,
  output: Output,
): Promise<CompressionReport> {
  const { evaluation } = recipe;
  const isRun = runsCandidates(recipe) && !isCheckpoint(modelPath);
  const runner = () =>
    createCandidateRunner({
      ...output,
      originalPath: modelPath,
      evaluation,
      executionProvider: target.executionProvider,
      instructionSets: target.instructionSets,
      dataPath,
    });
  const outputDirectory = path.join(scratch, "result");
  await mkdir(outputDirectory);
  const report = await compressModel(modelPath, {
    ...output,
    kind: "compress",
    recipe,
    target,
    outputDirectory,
    dataPath,
    calibrationPath: recipe.calibration?.data === undefined ? undefined : dataPath,
    candidates: isRun ? runner() : undefined,
  });
  if (report.choice !== undefined) output.log(report.choice);
  for (const { message } of report.warnings) output.log(`Warning: ${message}`);
  return report;
}

async function evaluate(
  { modelPath, dataPath, recipe, target, scratch }: Work,
  report: CompressionReport,
  output: Output,
): Promise<Evaluation> {
  let evaluation: Evaluation = { warnings: [...report.warnings] };
  const { level } = recipe.evaluation;
  if (level === "none") return evaluation;
  if (level === "weights") return addMeasured(evaluation, weightAccuracy(report.weights));
  const { executionProvider } = target;
  await evaluateModels({
    ...output,
    originalPath: await writeRunnableOriginal(modelPath, executionProvider, scratch, output.signal),
    checkpointPath: isCheckpoint(modelPath) ? modelPath : undefined,
    resultPath: path.join(scratch, "result", report.files[0]?.name ?? ""),
    evaluation: shareSamples(recipe, report),
    timingObstacle: explainUntimed(recipe),
    executionProvider,
    dataPath,
    scratchDirectory: scratch,
    onMeasured: (measured) => {
      for (const { message } of measured.warnings ?? []) output.log(`Warning: ${message}`);
      evaluation = addMeasured(evaluation, measured);
    },
  });
  return evaluation;
}
