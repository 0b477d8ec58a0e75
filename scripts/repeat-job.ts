import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { JobReport } from "./job-report.ts";
import { VerificationError } from "./verify-attestations.ts";
import { compressModel } from "../src/engine/compress-model.ts";
import type { Recipe } from "../src/contract/jobs/recipe.ts";
import type { CompressionReport } from "../src/engine/compression-report.ts";

/**
 * Does a job's work again, and compares the bytes of its files and the figures of its weights. What
 * times and losses decided is taken from the report: they differ between machines.
 * @throws VerificationError
 */
export async function repeatJob(
  report: JobReport,
  modelPath: string,
  calibrationPath?: string,
): Promise<void> {
  const { kind, target, restoredAtLoad, halved, model } = report;
  const recipe = findRecipe(report);
  const given = await hashFile(modelPath);
  if (given !== model.sha256) {
    throw new VerificationError(`The model has the SHA-256 ${given}, the report's ${model.sha256}`);
  }
  if (recipe.calibration?.data !== undefined && calibrationPath === undefined) {
    throw new VerificationError("The recipe's calibration data is needed to repeat the job");
  }
  const outputDirectory = await mkdtemp(path.join(tmpdir(), "verify-"));
  try {
    const repeated = await compressModel(modelPath, {
      kind,
      target,
      recipe,
      restoredAtLoad,
      halved,
      correctsBiases: report.calibration?.correctsBiases,
      calibrationPath,
      maxModelBytes: model.bytes,
      outputDirectory,
      signal: new AbortController().signal,
      onProgress: () => undefined,
      log: () => undefined,
    });
    await compareFiles(report, repeated, outputDirectory);
    compareWeights(report, repeated);
  } finally {
    await rm(outputDirectory, { recursive: true });
  }
}

/** The recipe with what was chosen for it. */
function findRecipe({ recipe, foundRecipe = recipe, calibration: chosen }: JobReport): Recipe {
  const { calibration } = foundRecipe;
  if (calibration === undefined || chosen?.method === undefined) return foundRecipe;
  return { ...foundRecipe, calibration: { ...calibration, method: chosen.method } };
}

async function compareFiles(
  { files }: JobReport,
  repeated: CompressionReport,
  folder: string,
): Promise<void> {
  const made = new Map<string, string>();
  for (const { name } of repeated.files) made.set(name, await hashFile(path.join(folder, name)));
  const reported = files.filter(({ kind }) => kind !== "stage");
  for (const { name, sha256 } of reported) {
    const found = made.get(name);
    if (found === sha256) continue;
    const what = found === undefined ? "is not made" : `has the SHA-256 ${found}`;
    throw new VerificationError(`Repeated, "${name}" ${what}; the report has ${sha256}`);
  }
  if (made.size !== reported.length) {
    throw new VerificationError(`Repeated, there are ${made.size} files, not ${reported.length}`);
  }
}

function compareWeights({ weights }: JobReport, repeated: CompressionReport): void {
  if (weights.length !== repeated.weights.length) {
    const counts = `${repeated.weights.length} weights, not ${weights.length}`;
    throw new VerificationError(`Repeated, the model has ${counts}`);
  }
  for (const [i, weight] of weights.entries()) {
    const again = repeated.weights[i];
    const figures = [
      ["form", weight.form, again?.form],
      ["bytes", weight.resultBytes, again?.resultBytes],
      ["SQNR", weight.error?.sqnrDb, again?.error?.sqnrDb],
      ["cosine similarity", weight.error?.cosine, again?.error?.cosine],
    ] as const;
    for (const [what, reported, found] of figures) {
      if (reported === found) continue;
      const difference = `${what} ${found}; the report has ${reported}`;
      throw new VerificationError(`Repeated, the weight "${weight.name}" has the ${difference}`);
    }
  }
}

export async function hashFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  return hash.digest("hex");
}
