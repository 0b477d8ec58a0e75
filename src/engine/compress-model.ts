import { randomUUID } from "node:crypto";
import { ServiceError } from "../contract/errors.ts";
import { constants, copyFile, link, mkdir, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { calibrateModel, chooseRanges, fitPlan, type ModelCalibration } from "./calibrate-model.ts";
import type { CandidateRunner } from "./candidate.ts";
import type { RestoredWeights } from "./choose-floating-point.ts";
import { chooseRestoredAtLoad } from "./choose-restored-at-load.ts";
import { buildCompressionReport, type CompressionReport } from "./compression-report.ts";
import {
  type CompressOptions,
  executePlan,
  reusePayloads,
  type WeightResult,
  type WrittenPlan,
} from "./execute-plan.ts";
import type { WrittenFile } from "./onnx/write-model.ts";
import { type CompressionPlan, planCompression, type PlanOptions } from "./plan-compression.ts";
import { blockRecipe } from "./search/forms.ts";
import type { FoundRecipe } from "./describe-search.ts";
import { searchRecipe } from "./search-recipe.ts";
import { firstPlan, type PlanRevision } from "./quantize/plan-revision.ts";
import { type CompletedTasks, readPartitions } from "./quantize/tasks/partition.ts";
import { digestWork, TaskJournal } from "./quantize/tasks/task-journal.ts";
import type { WeightPlan } from "./quantize/weight-plan.ts";
import { isForOtherRuntime, type RangeMethod, rangeMethods } from "../contract/jobs/recipe.ts";
import { explainUnplanned, requireSupportedRecipe } from "../contract/jobs/resolve-recipe.ts";
import { lacksDotProducts } from "../contract/jobs/target.ts";
import { formatCount } from "../contract/text/format-count.ts";

/**
 * Compresses a model by a recipe. Weights are read, transformed and written a tile at a time.
 * @throws ServiceError those of planCompression, storage_full
 */
export async function compressModel(
  modelPath: string,
  options: CompressOptions,
): Promise<CompressionReport> {
  return carryOutPasses(new Map(), modelPath, options);
}

/**
 * Compresses as compressModel does, with the same result, from the files of optimizeShare; weights
 * that they do not have are compressed here.
 * @throws ServiceError those of compressModel
 */
export async function assembleShares(
  modelPath: string,
  options: CompressOptions,
  sharePaths: readonly string[],
): Promise<CompressionReport> {
  return carryOutPasses(await readPartitions(sharePaths), modelPath, options);
}

/**
 * Reports what compressModel would do, without reading weights or writing files. The real result
 * differs where a weight turns out to fit no form when it is read, and by the nodes of weights
 * whose operators turn out to be slower quantized.
 * @throws ServiceError those of planCompression
 */
export async function predictCompression(
  modelPath: string,
  { plan: known, ...options }: PlanOptions & Pick<CompressOptions, "log" | "plan">,
): Promise<CompressionReport> {
  const obstacle = explainUnplanned(options.recipe);
  if (obstacle !== undefined) throw new ServiceError("recipe_unsupported", obstacle);
  const plan = known ?? (await planCompression(modelPath, options));
  for (const line of describePlan(plan)) options.log(line);
  return buildCompressionReport(
    plan,
    { files: [], restoredAtLoad: [], halved: [] },
    { results: [] },
  );
}

interface Pass extends WrittenPlan {
  readonly files: readonly WrittenFile[];
  /** By the position of the weight. */
  readonly results: ReadonlyMap<number, WeightResult>;
}

/**
 * Plans and writes a model, and once more from what is written where weights turned out to fit no
 * format or operators to be slower: nothing is computed twice.
 */
async function carryOutPasses(
  shares: CompletedTasks,
  modelPath: string,
  options: CompressOptions,
): Promise<CompressionReport> {
  const keptDirectory = findKeptDirectory(options);
  const isKept = keptDirectory !== undefined;
  const scratch = keptDirectory ?? path.join(options.outputDirectory, `.passes-${randomUUID()}`);
  const onProgress = createRisingProgress(options.onProgress);
  try {
    await mkdir(scratch, { recursive: true });
    const logged = new Set<string>();
    const made = { ...options, onProgress };
    const work = { shares, modelPath, scratch, isKept, options: made, logged };
    const { found, ...calibrated } = await findRecipe(await calibratePlan(work));
    const { pass, method, correctsBiases, ...restored } = await findFinalPass(calibrated);
    const { plan, directory, files, results } = pass;
    const place = isKept ? findPlacement(files) : rename;
    for (const { name } of files.toReversed()) {
      await place(path.join(directory, name), path.join(options.outputDirectory, name));
    }
    const { calibration } = calibrated;
    const ranged = { method, correctsBiases };
    const measured = { results: [...results.values()], calibration, ...ranged, found };
    return buildCompressionReport(plan, { files, ...restored }, measured);
  } finally {
    if (!isKept) await rm(scratch, { recursive: true, force: true });
  }
}

/** What is measured differs from one process to the next, and so does what follows from it. */
function findKeptDirectory({ recipe, keptDirectory }: CompressOptions): string | undefined {
  const isMeasured = recipe.calibration !== undefined || recipe.auto !== undefined;
  return isMeasured ? undefined : keptDirectory;
}

/** Largest result in several files that is copied, bytes. */
export const maxCopiedBytes = 1_500_000_000;

/** External data must not be a hard link. A result that is slow to copy is moved, and not kept. */
function findPlacement(files: readonly WrittenFile[]) {
  if (files.length === 1) return linkOrCopy;
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return bytes <= maxCopiedBytes ? copy : rename;
}

/** Not every file system has links. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(async () => copy(from, to));
}

async function copy(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE);
}

/** Fractions of later passes start from 0; the caller sees none that is less than one before. */
function createRisingProgress(report: CompressOptions["onProgress"]) {
  let highest = 0;
  return (fraction: number, message: string) => {
    highest = Math.max(highest, fraction);
    report(highest, message);
  };
}

interface PassWork {
  readonly shares: CompletedTasks;
  readonly modelPath: string;
  /** Folder of all passes. */
  readonly scratch: string;
  /** Whether an earlier process worked in it, and a later one goes on. */
  readonly isKept: boolean;
  readonly options: CompressOptions;
  readonly calibration?: ModelCalibration | undefined;
  /** What was said of earlier plans, which later ones do not repeat. */
  readonly logged: Set<string>;
}

/** Share of the work that the calibration is, where there is one. */
const calibrationShare = 0.3;

/** Observes what the recipe's calibration is for; the plan that was made for it serves on. */
async function calibratePlan(work: PassWork): Promise<PassWork> {
  const { modelPath, scratch, options } = work;
  const { recipe, calibrationPath, onProgress } = options;
  if (recipe.calibration === undefined) return work;
  const planned = { ...options, recipe: recipe.auto === undefined ? recipe : blockRecipe(recipe) };
  const plan = options.plan ?? (await planCompression(modelPath, planned));
  const calibration = await calibrateModel(modelPath, plan, {
    ...planned,
    calibrationPath,
    scratchDirectory: scratch,
    onProgress: (fraction, message) => onProgress(fraction * calibrationShare, message),
  });
  const { histograms, inputScales, inputMeans } = calibration;
  return {
    ...work,
    calibration,
    options: {
      ...options,
      // Ranges, scales and means that were observed are not part of it.
      plan: histograms.size + inputScales.size + inputMeans.size > 0 ? undefined : plan,
      onProgress: (fraction, message) =>
        onProgress(calibrationShare + fraction * (1 - calibrationShare), message),
    },
  };
}

/** Share of the work that the search is, where there is one. */
const searchShare = 0.8;

/** Searches the recipe where a goal stands for it; the passes carry out what was found. */
async function findRecipe(
  work: PassWork,
): Promise<PassWork & { readonly found?: FoundRecipe | undefined }> {
  const { modelPath, scratch, calibration, options } = work;
  const { onProgress, recipe, target } = options;
  if (recipe.auto === undefined) return work;
  requireSupportedRecipe(recipe, target);
  const searching = {
    ...options,
    modelPath,
    scratch,
    calibration,
    onProgress: (fraction: number, message: string) => onProgress(fraction * searchShare, message),
  };
  const found = await searchRecipe(searching, recipe.auto);
  return {
    ...work,
    found,
    options: {
      ...options,
      recipe: found.recipe,
      plan: undefined,
      onProgress: (fraction, message) =>
        onProgress(searchShare + fraction * (1 - searchShare), message),
    },
  };
}

interface FinalPass extends Pick<FirstPass, "pass" | "method"> {
  /** Whether what rounding changes on average is subtracted from biases. */
  readonly correctsBiases?: boolean;
  /** Positions of the weights that are, as times and losses decided. */
  readonly restoredAtLoad: readonly number[];
  /** Positions of the weights that are stored in half precision, as losses decided. */
  readonly halved: readonly number[];
}

/** A plan that was carried out, and what it was made for. */
interface FirstPass {
  readonly pass: Pass;
  readonly revision: PlanRevision;
  /** How ranges of activations were found; undefined where there are none. */
  readonly method: RangeMethod | undefined;
}

/** The pass by the recipe's ranges of activations, else by those whose result loses least. */
async function runBestPass(work: PassWork): Promise<FirstPass> {
  const { calibration, options } = work;
  const { candidates, log } = options;
  const method = options.recipe.calibration?.method ?? "minmax";
  if (calibration === undefined || calibration.histograms.size === 0) {
    return runFirstPass(work, firstPlan.ranges, undefined);
  }
  const runWith = (each: RangeMethod) => runFirstPass(work, chooseRanges(calibration, each), each);
  if (method !== "auto") return runWith(method);
  if (candidates === undefined) return runWith("minmax");
  let best: (FirstPass & { readonly sqnrDb: number }) | undefined;
  for (const each of rangeMethods) {
    const first = await runWith(each);
    const sqnrDb = await measureSqnrDb(first.pass, candidates);
    log(`With ranges of activations by ${each}: SQNR ${sqnrDb.toFixed(1)} dB`);
    const isBest = best === undefined || sqnrDb > best.sqnrDb;
    const other = isBest ? best : first;
    if (other !== undefined) await rm(other.pass.directory, { recursive: true });
    if (isBest) best = { ...first, sqnrDb };
  }
  if (best === undefined) throw new TypeError("There are no methods to find ranges");
  return best;
}

async function runFirstPass(
  work: PassWork,
  ranges: PlanRevision["ranges"],
  method: FirstPass["method"],
): Promise<FirstPass> {
  const { unfit: folded, inputScales } = work.calibration ?? {
    unfit: firstPlan.folded,
    inputScales: firstPlan.inputScales,
  };
  const revision = { ...firstPlan, folded, ranges, inputScales };
  return { ...(await runAcceptedPass(work, revision, undefined)), method };
}

/** Carries out a plan, and once more without weights that turned out to fit no format. */
async function runAcceptedPass(
  work: PassWork,
  revision: PlanRevision,
  earlier: Pass | undefined,
): Promise<Pick<FirstPass, "pass" | "revision">> {
  const pass = await runPass(work, revision, earlier);
  const found = [...pass.results.values()].flatMap(({ weight, rejection }) =>
    rejection === undefined ? [] : [[weight, rejection] as const],
  );
  if (found.length === 0) return { pass, revision };
  const rejected = new Map([...revision.rejected, ...found]);
  return runAcceptedPass(work, { ...revision, rejected }, pass);
}

async function findFinalPass(work: PassWork): Promise<FinalPass> {
  const { method, ...first } = await runBestPass(work);
  const restored = await chooseRestored(first.pass, first.revision, work);
  const isAsWritten = restored.folded.size + restored.halved.size === 0;
  const { pass, revision } = isAsWritten
    ? first
    : await runAcceptedPass(work, addRestored(first.revision, restored), first.pass);
  return {
    ...(await correctBiases(pass, revision, work)),
    method,
    restoredAtLoad: sortPositions(restored.folded),
    halved: sortPositions(restored.halved),
  };
}

/** The pass with biases corrected where that loses less, or where an earlier run had it so. */
async function correctBiases(
  pass: Pass,
  revision: PlanRevision,
  work: PassWork,
): Promise<Pick<FinalPass, "pass" | "correctsBiases">> {
  const { candidates, correctsBiases, log } = work.options;
  const { inputMeans } = work.calibration ?? firstPlan;
  const isTried = correctsBiases ?? candidates !== undefined;
  if (inputMeans.size === 0 || !isTried) return { pass };
  const corrected = await runPass(work, { ...revision, inputMeans }, undefined);
  if (candidates !== undefined && correctsBiases === undefined) {
    const exactDb = await measureSqnrDb(pass, candidates);
    const correctedDb = await measureSqnrDb(corrected, candidates);
    log(`With corrected biases: SQNR ${correctedDb.toFixed(1)} dB`);
    if (correctedDb <= exactDb) {
      await rm(corrected.directory, { recursive: true });
      return { pass };
    }
  }
  await rm(pass.directory, { recursive: true });
  return { pass: corrected, correctsBiases: true };
}

async function measureSqnrDb({ directory }: Pass, candidates: CandidateRunner): Promise<number> {
  const file = path.join(directory, "model.onnx");
  return (await candidates.measureSqnrDb(file, { beforeSoftmax: true })) ?? -Infinity;
}

function sortPositions(weights: ReadonlyMap<number, string>): number[] {
  return [...weights.keys()].toSorted((a, b) => a - b);
}

function addRestored(revision: PlanRevision, { folded, halved }: RestoredWeights): PlanRevision {
  return {
    ...revision,
    folded: new Map([...revision.folded, ...folded]),
    halved: new Map([...revision.halved, ...halved]),
  };
}

/** The weights that are restored, by times and losses or as an earlier run had them. */
async function chooseRestored(
  pass: Pass,
  revision: PlanRevision,
  work: PassWork,
): Promise<RestoredWeights> {
  const { candidates, recipe, target, signal, log, restoredAtLoad, halved = [] } = work.options;
  if (recipe.dequantize === "run") return { folded: new Map(), halved: new Map() };
  if (restoredAtLoad !== undefined) {
    const slow = restoredAtLoad.map(
      (weight) => [weight, "was not faster, or cost too much, when it was run"] as const,
    );
    const harmful = halved.map((weight) => [weight, "cost too much when it was run"] as const);
    return { folded: new Map(slow), halved: new Map(harmful) };
  }
  return chooseRestoredAtLoad(pass, {
    ...work,
    signal,
    log,
    candidates,
    isForOtherRuntime: isForOtherRuntime(recipe),
    lacksDotProducts: lacksDotProducts(target),
    multiplications: work.calibration?.multiplications ?? new Map(),
    replan: async (restored) => {
      const revised = addRestored(revision, restored);
      const plan = await planCompression(work.modelPath, work.options, revised);
      return fitPlan(plan, work.calibration);
    },
  });
}

/** Carries out a plan, with what an earlier pass has written, whose files go afterwards. */
async function runPass(
  { shares, modelPath, scratch, isKept, options, calibration, logged }: PassWork,
  revision: PlanRevision,
  earlier: Pass | undefined,
): Promise<Pass> {
  options.signal.throwIfAborted();
  const known = earlier === undefined ? options.plan : undefined;
  const planned = known ?? (await planCompression(modelPath, options, revision));
  const plan = fitPlan(planned, calibration);
  for (const line of describePlan(plan)) {
    if (!logged.has(line)) options.log(line);
    logged.add(line);
  }
  const isWritten = earlier !== undefined && earlier.files.length > 0;
  const tasks = isWritten ? reusePayloads(plan, earlier) : plan.tasks;
  const directory = path.join(scratch, isKept ? digestWork(tasks, plan.layout) : randomUUID());
  await mkdir(directory, { recursive: true });
  if (isKept && earlier === undefined) await removeOthers(directory);
  const { files, results } = await executePlan({ ...plan, tasks }, shares, {
    ...options,
    outputDirectory: directory,
    journal: isKept ? await TaskJournal.open(directory, plan.layout) : undefined,
  });
  const remaining = new Set(plan.tasks.map(({ weight }) => weight));
  const kept = [...(isWritten ? earlier.results : [])].filter(([weight]) => remaining.has(weight));
  if (earlier !== undefined) await rm(earlier.directory, { recursive: true });
  const all = new Map([...kept, ...results.map((result) => [result.weight, result] as const)]);
  return { plan, directory, files, results: all };
}

/** Candidates and later passes of processes that were killed: this one makes its own. */
async function removeOthers(directory: string): Promise<void> {
  const folder = path.dirname(directory);
  for (const name of await readdir(folder)) {
    if (name !== path.basename(directory)) await rm(path.join(folder, name), { recursive: true });
  }
}

/** What a plan does to a model, and why weights stay as they are, as lines of a job's log. */
function describePlan(plan: CompressionPlan): string[] {
  const { fused, weights, shards, originalBytes, resultBytes } = plan;
  const left = weights.filter(({ weight, format }) => {
    return format === undefined && !fused.weights.has(weight.tensor);
  });
  const change = `${weights.length - left.length} of ${weights.length} weights change`;
  return [
    `Plan: ${change}, ${originalBytes} to ${resultBytes} bytes`,
    ...(fused.operators > 0
      ? [`${formatCount(fused.operators, "operator becomes", "operators become")} part of others`]
      : []),
    ...(shards.count > 1 ? [`Weights are divided into ${shards.count} shards`] : []),
    ...countReasons(left).map(([reason, count]) =>
      count === 1
        ? `Unchanged: 1 weight: it ${reason}`
        : `Unchanged: ${count} weights: each ${reason}`,
    ),
  ];
}

/** The reasons for which weights do not change, most frequent first. */
function countReasons(weights: readonly WeightPlan[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { reason } of weights) {
    if (reason === undefined) continue;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}
