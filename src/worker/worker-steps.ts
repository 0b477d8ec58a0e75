import { mkdir } from "node:fs/promises";
import path from "node:path";
import { formatBytes } from "../contract/format-bytes.ts";
import { isRemoteSource } from "../contract/model-source.ts";
import { assembleShares } from "../engine/compress-model.ts";
import { optimizeShare } from "../engine/optimize-share.ts";
import { createJobCandidates } from "./create-job-candidates.ts";
import { fetchInputs } from "./fetch-inputs.ts";
import { finishJob } from "./finish-job.ts";
import { planModel, planOptions } from "./plan-model.ts";
import type { JobContext } from "./job-context.ts";
import type { Stage } from "./stage-clock.ts";

/** Fetches, plans and stores the model for the workers of the later steps. */
export async function shardModel(context: JobContext): Promise<void> {
  const { assignment, blobs, reporter, runStage, signal } = context;
  reporter.status("Sharding");
  const inputs = await runStage("fetch", async (stage) => fetchInputs(assignment, context, stage));
  const { sha256 } = inputs.model;
  reporter.model(inputs.model.bytes, sha256);
  await planModel(context, inputs);
  if (!isRemoteSource(assignment.model.source)) return;
  await runStage("publish", async () =>
    blobs.writeFile(inputs.model.path, { expectedSha256: sha256, signal }),
  );
}

/** Optimizes a share of the weights. */
export async function optimizePart(context: JobContext): Promise<void> {
  const { assignment, blobs, outputDirectory, reporter, runStage, signal } = context;
  const index = assignment.part?.index ?? 0;
  const count = assignment.recipe.parallelism;
  reporter.status("Optimizing");
  const inputs = await runStage("fetch", async (stage) => fetchInputs(assignment, context, stage));
  const outputPath = path.join(outputDirectory, "share");
  await runStage("optimize", async ({ onProgress, log }) => {
    const options = {
      ...planOptions(assignment),
      share: { index, count },
      outputPath,
      modelSha256: inputs.model.sha256,
      signal,
      onProgress,
    };
    const { weights, sourceBytes, bytes } = await optimizeShare(inputs.model.path, options);
    log(`${weights} weights: ${formatBytes(sourceBytes)} to ${formatBytes(bytes)}`);
  });
  const stored = await runStage("publish", async () => blobs.writeFile(outputPath, { signal }));
  reporter.share({ index, ...stored });
}

/** Assembles the result from all shares. */
export async function assembleModel(context: JobContext): Promise<void> {
  const { assignment, reporter, runStage } = context;
  reporter.status("Optimizing");
  const { inputs, shares } = await runStage("fetch", async (stage) => {
    return {
      inputs: await fetchInputs(assignment, context, stage),
      shares: await fetchShares(context, stage),
    };
  });
  const report = await runStage("optimize", async (stage) => {
    return assembleShares(
      inputs.model.path,
      {
        ...planOptions(assignment),
        ...context,
        ...stage,
        modelSha256: inputs.model.sha256,
        candidates: createJobCandidates(context, inputs, stage),
      },
      shares,
    );
  });
  await finishJob(context, inputs, report);
}

async function fetchShares(
  { assignment, blobs, directory, signal }: JobContext,
  { log }: Stage,
): Promise<string[]> {
  const folder = path.join(directory, "shares");
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
