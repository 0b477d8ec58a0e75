import { readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { batchFields } from "../contract/jobs/batch.ts";
import { gateName } from "../contract/jobs/gate-table.ts";
import type { Place, Places } from "../contract/jobs/github-report.ts";
import { limits } from "../contract/limits.ts";
import { modelReference } from "../contract/models/model.ts";
import { InputError } from "./input-error.ts";
import { type ModelEntry, parseModelEntry } from "./model-entry.ts";
import { parseYaml } from "./parse-yaml.ts";

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

export interface BatchFile {
  readonly fields: Omit<z.output<typeof batchFile>, "models">;
  readonly models: readonly ModelEntry[];
  readonly gatePlaces: Places["gates"];
}

/**
 * Reads a batch from a file of the workspace.
 * @throws InputError with all problems, by their lines
 */
export async function readBatchFile(file: string, workspace: string): Promise<BatchFile> {
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
  const { lineAtPath } = parsed;
  const { models = [], ...fields } = parsed.value;
  const gates = gateName.options.filter((gate) => fields.gates?.[gate] !== undefined);
  return {
    fields,
    models: models.map((entry, i) => ({ ...entry, place: placeAt(lineAtPath(["models", i])) })),
    gatePlaces: gates.map((gate) => ({ gate, ...placeAt(lineAtPath(["gates", gate])) })),
  };
}

async function readText(file: string, workspace: string): Promise<string> {
  const resolved = await realpath(path.resolve(workspace, file)).catch((cause: unknown) => {
    const found = `there is no file ${file} in the workspace ${workspace}`;
    throw createFileError(`${found}; is the repository checked out?`, cause);
  });
  if (path.relative(await realpath(workspace), resolved).startsWith("..")) {
    throw createFileError(`${file} lies outside of the workspace`);
  }
  const { size } = await stat(resolved);
  if (size > limits.jsonBodyBytes) {
    throw createFileError(`${file} has ${size} bytes; ${limits.jsonBodyBytes} are allowed`);
  }
  return readFile(resolved, "utf8");
}

function createFileError(message: string, cause?: unknown): InputError {
  return new InputError([{ message: `Input "batch-file": ${message}` }], { cause });
}
