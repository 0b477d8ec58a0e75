import { type BatchRequest, batchRequest } from "../contract/jobs/batch.ts";
import { formatProblem } from "../contract/format-problem.ts";
import type { Places } from "../contract/jobs/github-report.ts";
import { parseInput } from "../contract/parse-input.ts";
import { findModels, type NamedModel } from "./find-models.ts";
import { InputError } from "./input-error.ts";
import type { Inputs } from "./inputs.ts";
import { parseModelEntry } from "./model-entry.ts";
import { type BatchFile, readBatchFile } from "./read-batch-file.ts";

/** A batch whose models are not uploaded yet. */
export interface BatchPlan {
  readonly models: readonly NamedModel[];
  readonly targets: readonly string[];
  /** The rest of the request. */
  readonly fields: Omit<BatchRequest, "models" | "targets">;
  readonly places: Places;
}

interface PlanOptions {
  readonly workspace: string;
  readonly defaultSuite: string;
}

const emptyFile: BatchFile = { fields: {}, models: [], gatePlaces: [] };
/** Stands for the sources of files that are not uploaded yet, to validate the request. */
const validSource = `upload:sha256:${"0".repeat(64)}`;

/**
 * The batch that the inputs and the batch file describe; inputs override the file.
 * @throws InputError with all problems
 */
export async function planBatch(
  inputs: Inputs,
  { workspace, defaultSuite }: PlanOptions,
): Promise<BatchPlan> {
  const batchFile = inputs["batch-file"];
  const file = batchFile === undefined ? emptyFile : await readBatchFile(batchFile, workspace);
  const entries = inputs.models?.map(parseModelEntry) ?? file.models;
  const models = await findModels(entries, workspace);
  const request = parseRequest({
    ...file.fields,
    kind: inputs.kind ?? file.fields.kind,
    recipe: inputs.recipe ?? file.fields.recipe,
    gates: inputs.gates ?? file.fields.gates,
    suite: inputs.suite ?? file.fields.suite ?? defaultSuite,
    dryRun: inputs["dry-run"] || file.fields.dryRun,
    targets: inputs.targets ?? file.fields.targets,
    models: models.map(({ name }) => ({ name, source: validSource })),
  });
  const { models: _, targets, ...fields } = request;
  const gatePlaces = inputs.gates === undefined ? file.gatePlaces : [];
  return { models, targets, fields, places: { models: modelPlaces(models), gates: gatePlaces } };
}

function parseRequest(request: unknown): BatchRequest {
  const { data, problems } = parseInput(batchRequest, request);
  if (problems === undefined) return data;
  throw new InputError(
    problems.map((problem) => ({ message: `The batch's ${formatProblem(problem)}` })),
  );
}

function modelPlaces(models: readonly NamedModel[]): Places["models"] {
  return models.flatMap((model) => {
    const place = model.place ?? ("file" in model ? { file: model.file, line: 1 } : undefined);
    return place ? [{ model: model.name, ...place }] : [];
  });
}
