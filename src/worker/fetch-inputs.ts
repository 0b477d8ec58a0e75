import { mkdir } from "node:fs/promises";
import path from "node:path";
import { type ErrorCode, ServiceError } from "../contract/errors.ts";
import { formatBytes } from "../contract/text/format-bytes.ts";
import type { Recipe } from "../contract/jobs/recipe.ts";
import type { Assignment } from "../contract/worker-protocol/messages.ts";
import { languageFiles } from "../engine/language/language-files.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import { findKeptRanges } from "../engine/quantize/tasks/partition.ts";
import type { BlobFiles } from "../storage/blob-store.ts";
import {
  type FetchedModel,
  type FetchLimits,
  fetchModel,
  type FetchOptions,
} from "../storage/fetch-model.ts";
import { stripUrlSecrets } from "../storage/strip-url-secrets.ts";
import { restoreCheckpointOutline } from "./checkpoint-outline.ts";
import { type FetchedFiles, fetchModelFiles } from "./fetch-model-files.ts";
import type { Stage } from "./reporter.ts";
import type { SourceRelay } from "./service-connection.ts";

/** Largest file of evaluation or calibration data, bytes. */
const maxDataBytes = 8 * 1024 ** 3;
/** Name of an ONNX file that has no other one on this machine. */
export const modelFileName = "model.onnx";
/** The model's share of the fetch stage where data is fetched too. */
const modelShare = 0.8;

interface FetchDependencies {
  readonly blobs: BlobFiles;
  /** Scratch folder of the attempt. */
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly locateSource: FetchOptions["locateSource"];
  readonly relay: SourceRelay | undefined;
}

export interface JobInputs {
  readonly model: FetchedFiles;
  /** The `.npz` file of the evaluation. */
  readonly dataPath: string | undefined;
  /** Its SHA-256. */
  readonly dataSha256?: string | undefined;
  /** The `.npz` file of the calibration: the evaluation's where both have the same source. */
  readonly calibrationPath: string | undefined;
}

type FetchAssignment = Pick<
  Assignment,
  "model" | "recipe" | "dryRun" | "part" | "comparison" | "limits"
>;

/** What other pods have of a checkpoint. */
interface SharedCheckpoint {
  /** File of the outline. */
  readonly outline: string;
  /** Files of the shares, where they are known. */
  readonly shares: readonly string[];
}

/**
 * Fetches the model and, where this worker will use it, the caller's data.
 * @param shared what other pods have of a checkpoint, which is the model then
 */
export async function fetchInputs(
  assignment: FetchAssignment,
  dependencies: FetchDependencies,
  stage: Stage,
  shared?: SharedCheckpoint,
): Promise<JobInputs> {
  const { model, limits } = assignment;
  const sources = findDataSources(assignment);
  const fetching = { ...dependencies, limits, stage };
  const hasData = sources.evaluation !== undefined || sources.calibration !== undefined;
  stage.log(`Model "${model.name}" from ${stripUrlSecrets(model.source)}`);
  const options = await prepareFetchOptions(modelFileName, {
    ...fetching,
    share: hasData ? modelShare : 1,
  });
  const readsRanges = canReadRanges(assignment);
  const fetched =
    shared === undefined
      ? await fetchModelFiles(model, { ...options, readsRanges })
      : await openSharedCheckpoint(shared, model.source, { ...options, readsRanges, stage });
  const what =
    fetched.remote === undefined ? "" : " of versions and headers; weights are read later";
  stage.log(`${formatBytes(fetched.bytes)}, SHA-256 ${fetched.sha256}${what}`);
  for (const { path: name, bytes, sha256 } of fetched.external) {
    stage.log(`External data ${name}: ${formatBytes(bytes)}, SHA-256 ${sha256}`);
  }
  // What its result needs beside the model is there, or no work is begun.
  if (isCheckpoint(fetched.path)) await languageFiles(fetched.path, "cpu");
  const data = await fetchData("evaluation", sources.evaluation, fetching);
  const isShared = sources.calibration === sources.evaluation;
  const calibration = isShared
    ? data
    : await fetchData("calibration", sources.calibration, fetching);
  return {
    model: fetched,
    dataPath: data?.path,
    dataSha256: data?.sha256,
    calibrationPath: calibration?.path,
  };
}

interface SharedCheckpointOptions extends FetchOptions {
  readonly readsRanges: boolean;
  readonly stage: Stage;
}

/** A checkpoint whose headers come from another pod, and its weights where they are needed. */
async function openSharedCheckpoint(
  { outline, shares }: SharedCheckpoint,
  source: string,
  { readsRanges, stage, ...options }: SharedCheckpointOptions,
): Promise<FetchedFiles> {
  const restored = await restoreCheckpointOutline(outline, source, options);
  const checkpoint = { ...restored, external: [] };
  if (readsRanges) return checkpoint;
  const kept = await findKeptRanges(shares);
  const fetchedBytes = await checkpoint.remote.fetchAll(kept, options.signal);
  const [total, fetched] = [checkpoint.bytes, fetchedBytes].map(formatBytes);
  stage.log(`Of the checkpoint's ${total}, shares have all but ${fetched}, which was fetched`);
  return { ...checkpoint, remote: undefined };
}

/**
 * Whether the weights of a checkpoint are read once and in their order, so that they need not be on
 * this machine: nothing runs or describes the original, and plans need no values.
 */
function canReadRanges({ model, recipe, dryRun, part, comparison }: FetchAssignment): boolean {
  const runsModels = !dryRun && (part === null || part.step === "assemble");
  const isPinned = model.sha256 !== undefined;
  const staysElsewhere = !(runsModels && runsOriginal(recipe)) && comparison === null;
  return staysElsewhere && !isPinned && recipe.scheme !== "fp16";
}

/** Whether the worker that makes the result of a recipe runs the original too. */
export function runsOriginal({ evaluation, calibration, auto }: Recipe): boolean {
  return evaluation.level === "outputs" || calibration !== undefined || auto !== undefined;
}

type DataPurpose = "evaluation" | "calibration";

/** Sources of the caller's data that this worker uses. */
function findDataSources({
  recipe: { calibration, evaluation },
  dryRun,
  part,
}: FetchAssignment): Partial<Record<DataPurpose, string | undefined>> {
  const runsModel = !dryRun && (part === null || part.step === "assemble");
  if (!runsModel) return {};
  const evaluates = evaluation.level === "outputs";
  return {
    evaluation: evaluates ? evaluation.data : undefined,
    calibration: calibration?.data,
  };
}

interface StageFetchOptions extends FetchDependencies {
  readonly limits: FetchLimits;
  readonly stage: Stage;
}

interface FetchFileOptions extends StageFetchOptions {
  /** Progress of the stage when this file is fetched. */
  readonly share: number;
}

/** Model and data get folders of their own: external data beside a model is the model's. */
async function prepareFetchOptions(
  name: string,
  { blobs, directory, signal, limits, stage, share, locateSource, relay }: FetchFileOptions,
): Promise<FetchOptions> {
  const folder = path.join(directory, path.parse(name).name);
  await mkdir(folder, { recursive: true });
  const onProgress = (bytes: number, total: number | undefined) =>
    stage.onProgress(
      total === undefined || total === 0 ? 0 : (bytes / total) * share,
      `Fetching: ${formatBytes(bytes)}${total === undefined ? "" : ` of ${formatBytes(total)}`}`,
    );
  return {
    blobs,
    path: path.join(folder, name),
    limits,
    signal,
    locateSource,
    requestFromService: relay?.request,
    onProgress,
  };
}

const modelErrorCodes: readonly ErrorCode[] = [
  "model_not_found",
  "model_source_refused",
  "model_fetch_failed",
  "model_source_slow",
  "model_too_large",
];

/** Fetches a file of data, if there is one. Its errors have codes that differ from the model's. */
async function fetchData(
  purpose: DataPurpose,
  source: string | undefined,
  fetching: StageFetchOptions,
): Promise<FetchedModel | undefined> {
  if (source === undefined) return undefined;
  const name = purpose === "evaluation" ? "Evaluation data" : "Calibration data";
  fetching.stage.log(`${name} from ${stripUrlSecrets(source)}`);
  const limits = { ...fetching.limits, maxModelBytes: maxDataBytes };
  const file = purpose === "evaluation" ? "data.npz" : "calibration.npz";
  const options = await prepareFetchOptions(file, { ...fetching, limits, share: 1 });
  try {
    return await fetchModel({ source }, options);
  } catch (cause) {
    if (!(cause instanceof ServiceError) || !modelErrorCodes.includes(cause.code)) throw cause;
    const message = `The ${purpose} data cannot be used: ${cause.message}`;
    throw new ServiceError(`${purpose}_data_invalid`, message, { cause });
  }
}
