import { readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { batchFields } from "../contract/batch.ts";
import { gateName } from "../contract/gate-table.ts";
import type { Place, Places } from "../contract/github-report.ts";
import { limits } from "../contract/limits.ts";
import { modelReference } from "../contract/model.ts";
import { InputError } from "./input-error.ts";
import { type ModelEntry, parseModelEntry } from "./model-entry.ts";
import { parseYaml } from "./parse-yaml.ts";

const model = modelReference
  .partial()
  .extend({ file: z.string().min(1).max(1000).optional() })
  .refine(({ file, source }) => (file === undefined) !== (source === undefined), {
    error: "must have either `file`, a glob of files in the workspace, or `source`",
  });

/** A batch as repositories keep it: models may be files, and what an input of the action gives may be left out. */
const batchFile = z
  .strictObject({
    ...batchFields.shape,
    // A text stands for a whole entry, so that what is wrong in it can be told by its field.
    models: z
      .array(
        z.preprocess(
          (value) => (typeof value === "string" ? parseModelEntry(value) : value),
          model,
        ),
      )
      .max(1000),
  })
  .partial();
type BatchFields = Omit<z.output<typeof batchFile>, "models">;

export interface BatchFile {
  readonly fields: BatchFields;
  readonly models: readonly ModelEntry[];
  readonly gatePlaces: Places["gates"];
}

/**
 * Reads a batch from a file of the workspace.
 * @throws InputError with everything that is wrong in it, by lines
 */
export async function readBatchFile(file: string, workspace: string): Promise<BatchFile> {
  const parsed = parseYaml(await readText(file, workspace), batchFile);
  const fromRoot = path
    .relative(workspace, path.resolve(workspace, file))
    .replaceAll(path.sep, "/");
  const placeAt = (line: number): Place => ({ file: fromRoot, line });
  if ("problems" in parsed) {
    throw new InputError(
      parsed.problems.map(({ line, message }) => ({
        message: `${file}, line ${line}: ${message}`,
        place: placeAt(line),
      })),
    );
  }
  const { lineAtPath } = parsed;
  const { models = [], ...fields } = parsed.value;
  return {
    fields,
    models: models.map((entry, i) => ({ ...entry, place: placeAt(lineAtPath(["models", i])) })),
    gatePlaces: gateName.options
      .filter((gate) => fields.gates?.[gate] !== undefined)
      .map((gate) => ({ gate, ...placeAt(lineAtPath(["gates", gate])) })),
  };
}

async function readText(file: string, workspace: string): Promise<string> {
  const createFileError = (message: string, cause?: unknown) =>
    new InputError([{ message: `Input "batch-file": ${message}` }], { cause });
  const found = await realpath(path.resolve(workspace, file)).catch((error: unknown) => {
    throw createFileError(
      `there is no file ${file} in the workspace ${workspace}; is the repository checked out?`,
      error,
    );
  });
  if (path.relative(await realpath(workspace), found).startsWith(".."))
    throw createFileError(`${file} lies outside of the workspace`);
  const { size } = await stat(found);
  if (size > limits.jsonBodyBytes)
    throw createFileError(`${file} has ${size} bytes; ${limits.jsonBodyBytes} are allowed`);
  return readFile(found, "utf8");
}
