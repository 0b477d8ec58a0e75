import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { formatBytes } from "../contract/text/format-bytes.ts";
import { isFolderSource, isRemoteSource } from "../contract/models/model-source.ts";
import { ServiceError } from "../contract/errors.ts";
import { formatCount } from "../contract/text/format-count.ts";
import { assembleShares } from "../engine/compress-model.ts";
import { isCheckpoint } from "../engine/language/open-language-model.ts";
import type { FetchRanges } from "../engine/onnx/payload.ts";
import { readOutline } from "../engine/onnx/model-outline.ts";
import { optimizeShare, writeOutline } from "../engine/partial-plan.ts";
import type { Assignment, ModelOutline } from "../contract/worker-protocol/messages.ts";
import { writeCheckpointOutline } from "./checkpoint-outline.ts";
import { createJobCandidates, planModel, planOptions } from "./plan-model.ts";
import { fetchInputs, type JobInputs, modelFileName, runsOriginal } from "./fetch-inputs.ts";
import type { FetchedFiles } from "./fetch-model-files.ts";
import { finishJob } from "./finish-job.ts";
import { PartialModel } from "./partial-model.ts";
import type { JobContext } from "./job-context.ts";
import { reportForecast } from "./report-forecast.ts";
import type { Stage } from "./reporter.ts";

/** Fetches, plans and stores the model for the workers of the later steps. */
export async function shardModel(context: JobContext): Promise<void> {
  const { assignment, blobs, reporter, runStage, signal } = context;
  reporter.status("Sharding");
  const inputs = await runStage("fetch", async (stage) => fetchInputs(assignment, context, stage));
  if (isCheckpoint(inputs.model.path)) requireDivisible(assignment.model, inputs.model);
  const { sha256, external } = inputs.model;
  reporter.model(inputs.model.bytes, sha256);
  const plan = await planModel(context, inputs);
  await reportForecast(context, inputs, plan);
  await runStage("publish", async ({ log }) => {
    const file = path.join(context.directory, "outline");
    if (isFolderSource(assignment.model.source)) {
      await writeCheckpointOutline(inputs.model, file);
    } else {
      if (isRemoteSource(assignment.model.source)) await publishModel(context, inputs.model);
      await writeOutline(plan, file, { modelSha256: sha256, files: external, signal });
    }
    const outline = await blobs.writeFile(file, { signal });
    reporter.outline(outline);
    log(`Outline for the pods of the shares: ${formatBytes(outline.bytes)}`);
  });
}

/**
 * Pods of the shares read weights by ranges, or files of their own machine.
 * @throws ServiceError recipe_unsupported
 */
function requireDivisible({ source }: Assignment["model"], { remote }: FetchedFiles): void {
  if (remote !== undefined || (isFolderSource(source) && !isRemoteSource(source))) return;
  const what = isFolderSource(source)
    ? "A checkpoint in half precision, or with a SHA-256,"
    : "A GGUF file";
  const message = `${what} is optimized by one pod: parallelism must be 1`;
  throw new ServiceError("recipe_unsupported", message);
}

/** Stores a model that lies elsewhere, since it could be another one later. */
async function publishModel(
  { blobs, signal }: JobContext,
  { path: modelPath, sha256, external }: FetchedFiles,
): Promise<void> {
  await blobs.writeFile(modelPath, { expectedSha256: sha256, signal });
  for (const file of external) {
    const externalPath = path.join(path.dirname(modelPath), file.path);
    await blobs.writeFile(externalPath, { expectedSha256: file.sha256, signal });
  }
}

/** Optimizes a share of the weights, unless it is done; fetches the content only of that share. */
export async function optimizePart(context: JobContext): Promise<void> {
  const { assignment, blobs, outputDirectory, reporter, runStage, signal } = context;
  const { index = 0, shares: [finished] = [] } = assignment.part ?? {};
  const count = assignment.recipe.parallelism;
  reporter.status("Optimizing");
  if (finished !== undefined) {
    reporter.log(`Share ${index + 1} was finished by an earlier pod`);
    return;
  }
  const { model, fetchRanges } = await fetchPart(context);
  const outputPath = path.join(outputDirectory, "share");
  await runStage("optimize", async ({ onProgress, log }) => {
    const options = {
      ...planOptions(assignment),
      share: { index, count },
      outputPath,
      modelSha256: model.sha256,
      fetchRanges,
      remote: model.remote,
      keepsFetched: runsOriginal(assignment.recipe),
      signal,
      onProgress,
    };
    const { weights, sourceBytes, bytes } = await optimizeShare(model.path, options);
    log(`${formatCount(weights, "weight")}: ${formatBytes(sourceBytes)} to ${formatBytes(bytes)}`);
  });
  const stored = await runStage("publish", async () => blobs.writeFile(outputPath, { signal }));
  reporter.share({ index, ...stored });
}

/** Assembles the result from all shares. */
export async function assembleModel(context: JobContext): Promise<void> {
  const { assignment, reporter, runStage } = context;
  reporter.status("Optimizing");
  const sharesFolder = path.join(context.directory, "shares");
  const shares = await runStage("fetch", async (stage) => {
    return fetchShares(sharesFolder, context, stage);
  });
  const inputs = await fetchPart(context, shares);
  const report = await runStage("optimize", async (stage) => {
    return assembleShares(
      inputs.model.path,
      {
        ...planOptions(assignment),
        ...context,
        ...stage,
        modelSha256: inputs.model.sha256,
        fetchRanges: inputs.fetchRanges,
        remote: inputs.model.remote,
        calibrationPath: inputs.calibrationPath,
        candidates: createJobCandidates(context, inputs, stage),
      },
      shares,
    );
  });
  // The evaluation needs the room.
  await rm(sharesFolder, { recursive: true });
  await finishJob(context, inputs, report);
}

interface PartInputs extends JobInputs {
  readonly fetchRanges: FetchRanges | undefined;
}

/**
 * Fetches what a step after the first needs to plan, or all where it runs the original.
 * @param shares files of the shares, where they are to be assembled
 */
async function fetchPart(context: JobContext, shares: readonly string[] = []): Promise<PartInputs> {
  const { assignment, runStage } = context;
  const { part, model, recipe } = assignment;
  if (part?.outline && isFolderSource(model.source)) {
    return fetchFolderPart(context, part.outline, shares);
  }
  const isAssembling = part?.step === "assemble";
  // The result of a file that is read in place is of no other than the one that was sharded.
  const isChecked = isAssembling && model.source.startsWith("file:");
  const outline = (isAssembling && runsOriginal(recipe)) || isChecked ? null : part?.outline;
  if (!outline) {
    const inputs = await runStage("fetch", async (stage) => {
      return fetchInputs({ ...assignment, model: await findFiles(context) }, context, stage);
    });
    return { ...inputs, fetchRanges: undefined };
  }
  const partial = await runStage("fetch", async () => PartialModel.open(context, outline));
  const fetchRanges: FetchRanges = async (ranges) =>
    runStage("fetch", async ({ log }) => {
      await partial.fetchRanges(ranges);
      log(partial.describe());
    });
  return { model: partial.file, dataPath: undefined, calibrationPath: undefined, fetchRanges };
}

/** A checkpoint is planned from the headers that the shard step has read, unless they are here. */
async function fetchFolderPart(
  context: JobContext,
  outline: ModelOutline,
  shares: readonly string[],
): Promise<PartInputs> {
  const { assignment, blobs, directory, runStage, signal } = context;
  const isRemote = isRemoteSource(assignment.model.source);
  const file = path.join(directory, "outline");
  if (isRemote) await blobs.materialize(outline.sha256, file, signal);
  const inputs = await runStage("fetch", async (stage) => {
    const shared = isRemote ? { outline: file, shares } : undefined;
    return fetchInputs(assignment, context, stage, shared);
  });
  return { ...inputs, fetchRanges: undefined };
}

/** The model as a later step reads it, with the files that the shard step stored of it. */
async function findFiles({ assignment, blobs, directory, signal }: JobContext) {
  const { model, part } = assignment;
  if (model.files !== undefined || !part?.outline || model.source.startsWith("file:")) return model;
  const file = path.join(directory, "outline");
  await blobs.materialize(part.outline.sha256, file, signal);
  const { modelSha256: sha256, bytes, files } = await readOutline(file);
  return files.length === 0
    ? model
    : { ...model, files: [{ path: modelFileName, sha256, bytes }, ...files] };
}

async function fetchShares(
  folder: string,
  { assignment, blobs, signal }: JobContext,
  { log }: Stage,
): Promise<string[]> {
  await mkdir(folder);
  const files: string[] = [];
  for (const { index, sha256, bytes } of assignment.part?.shares ?? []) {
    const file = path.join(folder, String(index));
    await blobs.materialize(sha256, file, signal);
    log(`Share ${index + 1}: ${formatBytes(bytes)}`);
    files.push(file);
  }
  return files;
}
