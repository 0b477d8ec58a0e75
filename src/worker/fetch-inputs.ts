import { mkdir } from "node:fs/promises";
import path from "node:path";
import { type ErrorCode, ServiceError } from "../contract/errors.ts";
import { formatBytes } from "../contract/format-bytes.ts";
import type { Assignment } from "../contract/worker.ts";
import type { BlobFiles } from "../storage/blob-store.ts";
import { type FetchedModel, fetchModel, type FetchLimits } from "../storage/fetch-model.ts";
import type { Stage } from "./stage-clock.ts";

/** Largest file of evaluation data, bytes. */
const maxEvaluationDataBytes = 8 * 1024 ** 3;
/** Share of the fetch stage that the model counts for where there is evaluation data too. */
const modelShare = 0.8;

interface FetchDependencies {
  readonly blobs: BlobFiles;
  /** Folder of the attempt's own. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

export interface JobInputs {
  readonly model: FetchedModel;
  /** The `.npz` file of the evaluation. */
  readonly dataPath: string | undefined;
}

/** Brings the model and, where the evaluation will use it, the caller's data onto this machine. */
export async function fetchInputs(
  {
    model,
    recipe,
    dryRun,
    part,
    limits,
  }: Pick<Assignment, "model" | "recipe" | "dryRun" | "part" | "limits">,
  dependencies: FetchDependencies,
  stage: Stage,
): Promise<JobInputs> {
  const { level, data } = recipe.evaluation;
  const evaluates = level === "outputs" && !dryRun && (part === null || part.step === "assemble");
  const dataSource = evaluates ? data : undefined;
  const share = dataSource === undefined ? 1 : modelShare;
  stage.log(`Model "${model.name}" from ${stripSourceQuery(model.source)}`);
  const fetched = await fetchModel(
    model,
    await prepareFetchOptions("model.onnx", { limits, ...dependencies, stage, share }),
  );
  stage.log(`${formatBytes(fetched.bytes)}, SHA-256 ${fetched.sha256}`);
  if (dataSource === undefined) return { model: fetched, dataPath: undefined };
  stage.log(`Evaluation data from ${stripSourceQuery(dataSource)}`);
  const dataLimits = { ...limits, maxModelBytes: maxEvaluationDataBytes };
  const options = await prepareFetchOptions("data.npz", {
    limits: dataLimits,
    ...dependencies,
    stage,
    share: 1,
  });
  return { model: fetched, dataPath: await fetchData(dataSource, options) };
}

interface FetchFileOptions extends FetchDependencies {
  readonly limits: FetchLimits;
  readonly stage: Stage;
  /** Progress of the stage when this file is there. */
  readonly share: number;
}

/** Each file gets a folder of its own, so that a model finds nothing but itself beside it. */
async function prepareFetchOptions(
  name: string,
  { blobs, directory, signal, limits, stage, share }: FetchFileOptions,
) {
  const folder = path.join(directory, path.parse(name).name);
  await mkdir(folder, { recursive: true });
  const onProgress = (bytes: number, total: number | undefined) =>
    stage.onProgress(
      total === undefined || total === 0 ? 0 : (bytes / total) * share,
      `Fetching: ${formatBytes(bytes)}${total === undefined ? "" : ` of ${formatBytes(total)}`}`,
    );
  return { blobs, path: path.join(folder, name), limits, signal, onProgress };
}

const modelErrorCodes: readonly ErrorCode[] = [
  "model_not_found",
  "model_source_refused",
  "model_fetch_failed",
  "model_too_large",
];

/** A caller must not take a fault of the data for one of the model. */
async function fetchData(
  source: string,
  options: Parameters<typeof fetchModel>[1],
): Promise<string> {
  try {
    return (await fetchModel({ source }, options)).path;
  } catch (error) {
    if (!(error instanceof ServiceError) || !modelErrorCodes.includes(error.code)) throw error;
    throw new ServiceError(
      "evaluation_data_invalid",
      `The evaluation data cannot be used: ${error.message}`,
      {
        cause: error,
      },
    );
  }
}

/** Signed URLs carry their secret in the query. */
function stripSourceQuery(source: string): string {
  return source.replace(/[?#].*$/, "");
}
