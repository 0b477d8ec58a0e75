import { readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { InputError } from "./explain-error.ts";
import { findModels, isBelow, type NamedModel } from "./find-models.ts";
import type { Inputs } from "./inputs.ts";
import { type ModelEntry, parseModelEntry } from "./model-entry.ts";
import { parseYaml } from "./parse-yaml.ts";
import { formatProblem } from "../contract/format-problem.ts";
import { batchFields, type BatchRequest, batchRequest } from "../contract/batches/batch.ts";
import { gateName } from "../contract/jobs/gate-table.ts";
import type { Place, Places } from "../contract/batches/github-report.ts";
import { limits } from "../contract/limits.ts";
import { modelReference } from "../contract/models/model.ts";
import { parseInput } from "../contract/parse-input.ts";

/** A batch whose models are not uploaded yet. */
export interface BatchPlan {
  readonly models: readonly NamedModel[];
  readonly targets: readonly string[];
  /** The rest of the request. */
  readonly fields: Omit<BatchRequest, "models" | "targets">;
  readonly places: Places;
  /** The line of the batch file that says a field of the request, if one does. */
  readonly placeOf: LookUpPlace;
}

type LookUpPlace = (path: readonly PropertyKey[]) => Place | undefined;

interface PlanOptions {
  readonly workspace: string;
  readonly defaultSuite: string;
  /** As `readBatchFile` gives it. */
  readonly batchFile: Promise<BatchFile>;
}

/** Stands for the sources of files that are not uploaded yet, to validate the request. */
const validSource = `upload:sha256:${"0".repeat(64)}`;

/**
 * The batch that the inputs and the batch file describe; inputs override the file.
 * @throws InputError with all problems
 */
export async function planBatch(
  inputs: Inputs,
  { workspace, defaultSuite, batchFile }: PlanOptions,
): Promise<BatchPlan> {
  const file = await batchFile;
  const entries = inputs.models?.map(parseModelEntry) ?? file.models;
  const models = await findModels(entries, workspace);
  const ofFile: Readonly<Record<string, unknown>> = file.fields;
  const request: Readonly<Record<string, unknown>> = {
    ...ofFile,
    kind: inputs.kind ?? file.fields.kind,
    recipe: inputs.recipe ?? file.fields.recipe,
    gates: inputs.gates ?? file.fields.gates,
    suite: inputs.suite ?? file.fields.suite ?? defaultSuite,
    dryRun: inputs["dry-run"] || file.fields.dryRun,
    targets: inputs.targets ?? file.fields.targets,
    models: models.map(({ name }) => ({ name, source: validSource })),
  };
  const placeOf: LookUpPlace = (fieldPath) => {
    const [field = ""] = fieldPath.map(String);
    const isOfFile = ofFile[field] !== undefined && ofFile[field] === request[field];
    return isOfFile ? file.placeOf(fieldPath) : undefined;
  };
  const { models: _, targets, ...fields } = parseRequest(request, placeOf);
  const gatePlaces = inputs.gates === undefined ? file.gatePlaces : [];
  const places = { models: modelPlaces(models), gates: gatePlaces };
  return { models, targets, fields, places, placeOf };
}

/** Whether the step only plans. What is wrong in the batch file is left to `planBatch`. */
export async function isDryRun(
  inputs: Pick<Inputs, "dry-run">,
  batchFile: Promise<BatchFile>,
): Promise<boolean> {
  const isInFile = await batchFile.then(
    ({ fields }) => fields.dryRun === true,
    () => false,
  );
  return inputs["dry-run"] || isInFile;
}

function parseRequest(request: unknown, placeOf: LookUpPlace): BatchRequest {
  const { data, problems } = parseInput(batchRequest, request);
  if (problems === undefined) return data;
  throw new InputError(
    problems.map((problem) => ({
      message: `The batch's ${formatProblem(problem)}`,
      place: placeOf(problem.path),
    })),
  );
}

function modelPlaces(models: readonly NamedModel[]): Places["models"] {
  return models.flatMap((model) => {
    const place = model.place ?? ("file" in model ? { file: model.file, line: 1 } : undefined);
    return place ? [{ model: model.name, ...place }] : [];
  });
}

const model = modelReference
  .partial()
  .extend({ file: z.string().min(1).max(1000).optional() })
  .refine(({ file, source }) => (file === undefined) !== (source === undefined), {
    error: "must have either `file`, a glob of files in the workspace, or `source`",
  });

/** A string stands for an entry. Parsing it first lets an error name the entry's field. */
const modelOrLine = z.preprocess(
  (value) => (typeof value === "string" ? parseModelEntry(value) : value),
  model,
);

/** A batch whose models may be files, and whose fields may be inputs of the action instead. */
const batchFile = z
  .strictObject({ ...batchFields.shape, models: z.array(modelOrLine).max(1000) })
  .partial();

/** What a batch file says; nothing where the step has none. */
export interface BatchFile {
  readonly fields: Omit<z.output<typeof batchFile>, "models">;
  readonly models: readonly ModelEntry[];
  readonly gatePlaces: Places["gates"];
  /** The line of a field, or of the nearest one around it. */
  readonly placeOf: LookUpPlace;
}

/**
 * Reads a batch from the file of the input `batch-file`, which lies in the workspace.
 * @throws InputError with all problems, by their lines
 */
export async function readBatchFile(
  inputs: Pick<Inputs, "batch-file">,
  workspace: string,
): Promise<BatchFile> {
  const file = inputs["batch-file"];
  if (file === undefined) {
    return { fields: {}, models: [], gatePlaces: [], placeOf: () => undefined };
  }
  const parsed = parseYaml(await readText(file, workspace), batchFile);
  const fromRoot = path.relative(workspace, path.resolve(workspace, file));
  const placeAt = (line: number): Place => {
    return { file: fromRoot.replaceAll(path.sep, "/"), line };
  };
  if ("problems" in parsed) {
    const problems = parsed.problems.map(({ line, message }) => {
      return { message: `${file}, line ${line}: ${message}`, place: placeAt(line) };
    });
    throw new InputError(problems);
  }
  const placeOf = (fieldPath: readonly PropertyKey[]) => placeAt(parsed.lineAtPath(fieldPath));
  const { models = [], ...fields } = parsed.value;
  const gates = gateName.options.filter((gate) => fields.gates?.[gate] !== undefined);
  return {
    fields,
    models: models.map((entry, i) => ({ ...entry, place: placeOf(["models", i]) })),
    gatePlaces: gates.map((gate) => ({ gate, ...placeOf(["gates", gate]) })),
    placeOf,
  };
}

async function readText(file: string, workspace: string): Promise<string> {
  const resolved = await realpath(path.resolve(workspace, file)).catch((cause: unknown) => {
    const found = `there is no file ${file} in the workspace ${workspace}`;
    throw createFileError(`${found}; is the repository checked out?`, cause);
  });
  if (!isBelow(await realpath(workspace), resolved)) {
    throw createFileError(`${file} lies outside of the workspace`);
  }
  const { size } = await stat(resolved);
  if (size > limits.jsonBodyBytes) {
    throw createFileError(`${file} has ${size} bytes; at most ${limits.jsonBodyBytes} are allowed`);
  }
  return readFile(resolved, "utf8");
}

function createFileError(message: string, cause?: unknown): InputError {
  return new InputError([{ message: `Input "batch-file": ${message}` }], { cause });
}
