import { type BatchRequest, batchRequest } from "../contract/batch.ts";
import type { Places } from "../contract/github-report.ts";
import { findModels, type NamedModel } from "./find-models.ts";
import { InputError } from "./input-error.ts";
import { parseModelEntry } from "./model-entry.ts";
import { type BatchFile, readBatchFile } from "./read-batch-file.ts";
import type { Inputs } from "./read-inputs.ts";

/** What is to be submitted, before the service has its files. */
export interface BatchPlan {
  readonly models: readonly NamedModel[];
  readonly targets: readonly string[];
  /** The rest of the request. */
  readonly fields: Omit<BatchRequest, "models" | "targets">;
  readonly places: Places;
}

const noFile: BatchFile = { fields: {}, models: [], gatePlaces: [] };
/** Stands in a check of the request for files that have no source yet. */
const someSource = `upload:sha256:${"0".repeat(64)}`;

/**
 * The batch that the inputs and the batch file ask for.
 * @throws InputError with everything that is wrong
 */
export async function planBatch(
  inputs: Inputs,
  { workspace, defaultSuite }: { workspace: string; defaultSuite: string },
): Promise<BatchPlan> {
  const file =
    inputs["batch-file"] === undefined
      ? noFile
      : await readBatchFile(inputs["batch-file"], workspace);
  const entries = inputs.models?.map((line) => parseModelEntry(line)) ?? file.models;
  const models = await findModels(entries, workspace);
  const {
    recipe = file.fields.recipe,
    gates = file.fields.gates,
    suite = file.fields.suite ?? defaultSuite,
  } = inputs;
  const request = {
    ...file.fields,
    recipe,
    gates,
    suite,
    dryRun: inputs["dry-run"] || file.fields.dryRun,
    targets: inputs.targets ?? file.fields.targets,
    models: models.map(({ name }) => ({ name, source: someSource })),
  };
  const parsed = batchRequest.safeParse(request);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      (issue) => `The batch's ${issue.path.join("/")}: ${issue.message}`,
    );
    throw new InputError(problems.map((message) => ({ message })));
  }
  const { models: _, targets, ...fields } = parsed.data;
  return {
    models,
    targets,
    fields,
    places: {
      models: models.flatMap((model) => {
        const place = model.place ?? ("file" in model ? { file: model.file, line: 1 } : undefined);
        return place ? [{ model: model.name, ...place }] : [];
      }),
      gates: inputs.gates === undefined ? file.gatePlaces : [],
    },
  };
}
