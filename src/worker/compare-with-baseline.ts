import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import type { JobInputs } from "./fetch-inputs.ts";
import type { JobContext } from "./job-context.ts";
import { isSameModel, type ModelDiff, shortenModelDiff } from "../contract/jobs/model-diff.ts";
import {
  maxDescriptionBytes,
  type ModelDescription,
  modelDescription,
} from "../contract/models/model-description.ts";
import { compareModels } from "../engine/diff/compare-models.ts";
import { describeModel } from "../engine/diff/describe-model.ts";
import { errorMessage } from "../log/error-message.ts";

type ComparisonContext = Pick<
  JobContext,
  "assignment" | "blobs" | "directory" | "reporter" | "signal"
>;

interface ModelComparison {
  readonly description: ModelDescription;
  readonly diff: ModelDiff | undefined;
}

/**
 * Describes the job's model for later commits, and compares it with that of the baseline. That
 * something is wrong with either says nothing of the job's result.
 */
export async function compareWithBaseline(
  context: ComparisonContext,
  inputs: JobInputs,
): Promise<ModelComparison | undefined> {
  const { assignment, reporter, signal } = context;
  if (assignment.comparison === null) return undefined;
  try {
    const { maxModelBytes } = assignment.limits;
    const description = await describeModel(inputs.model.path, maxModelBytes, signal);
    const before = await readDescription(context, assignment.comparison.description);
    if (before === undefined) return { description, diff: undefined };
    const diff = compareModels(before, description);
    reporter.telemetry({ modelDiff: shortenModelDiff(diff) });
    reporter.log(summarizeDiff(diff));
    return { description, diff };
  } catch (error) {
    signal.throwIfAborted();
    reporter.log(`The model was not compared with the baseline's: ${errorMessage(error)}`);
    return undefined;
  }
}

async function readDescription(
  { blobs, directory, signal }: ComparisonContext,
  sha256: string | null,
): Promise<ModelDescription | undefined> {
  if (sha256 === null) return undefined;
  const file = path.join(directory, "baseline-description.json");
  await blobs.materialize(sha256, file, signal);
  const { size } = await stat(file);
  if (size > maxDescriptionBytes) throw new Error(`Its description has ${size} bytes`);
  return modelDescription.parse(JSON.parse(await readFile(file, "utf8")));
}

function summarizeDiff(diff: ModelDiff): string {
  if (isSameModel(diff)) return "Model: the same as the baseline's";
  const count = ({ added, removed, changed }: ModelDiff["nodes"]) =>
    `${added} added, ${removed} removed, ${changed} changed`;
  return `Model, against the baseline's: nodes ${count(diff.nodes)}; weights ${count(diff.weights)}`;
}
