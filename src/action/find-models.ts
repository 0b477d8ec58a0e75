import { glob, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { modelReference } from "../contract/model.ts";
import type { Place } from "../contract/github-report.ts";
import { InputError, type Problem } from "./input-error.ts";
import type { ModelEntry } from "./model-entry.ts";

/** A model of the batch: a file of the workspace that is still to be uploaded, or a source that the service reads itself. */
export type NamedModel = {
  readonly name: string;
  readonly sha256?: string;
  readonly place?: Place;
} & (
  | {
      /** Relative to the workspace, with slashes on every system. */
      readonly file: string;
    }
  | { readonly source: string }
);

/**
 * The models that entries stand for, each file once, in the order of the entries.
 * @throws InputError with every entry that stands for none
 */
export async function findModels(
  entries: readonly ModelEntry[],
  workspace: string,
): Promise<NamedModel[]> {
  const root = await realpath(workspace);
  const excluded = entries.flatMap(({ file }) => (file?.startsWith("!") ? file.slice(1) : []));
  const problems: Problem[] = [];
  const models: NamedModel[] = [];
  for (const entry of entries.filter(({ file }) => !file?.startsWith("!"))) {
    try {
      const found =
        entry.file === undefined
          ? [resolveSource(entry)]
          : await resolveFiles(entry, { root, excluded });
      models.push(
        ...found.filter(
          (model) => !models.some((known) => modelLocation(known) === modelLocation(model)),
        ),
      );
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push(...error.problems);
    }
  }
  problems.push(...duplicateNameProblems(models));
  if (problems.length > 0) throw new InputError(problems);
  return models;
}

function modelLocation(model: NamedModel): string {
  return "file" in model ? model.file : model.source;
}

function resolveSource(entry: ModelEntry): NamedModel {
  const { name, source = "", sha256, place } = entry;
  const parsed = modelReference.safeParse({ source, name });
  if (!parsed.success)
    throw createEntryError(entry, parsed.error.issues.map(({ message }) => message).join("; "));
  return {
    name: name ?? defaultModelName(new URL(source).pathname),
    source,
    ...(sha256 && { sha256 }),
    ...(place && { place }),
  };
}

async function resolveFiles(
  entry: ModelEntry,
  { root, excluded }: { root: string; excluded: readonly string[] },
): Promise<NamedModel[]> {
  const { name, file: pattern = "", sha256, place } = entry;
  const files: string[] = [];
  for await (const match of glob(pattern, { cwd: root, exclude: [...excluded] })) {
    const file = path.resolve(root, match);
    if (!(await stat(file)).isFile()) continue;
    // A link could lead to any file of the runner.
    if (path.relative(root, await realpath(file)).startsWith("..")) {
      throw createEntryError(entry, `${match} lies outside of the workspace`);
    }
    files.push(path.relative(root, file).replaceAll(path.sep, "/"));
  }
  if (files.length === 0) {
    throw createEntryError(
      entry,
      `no file of the workspace ${root} matches; is the repository checked out, with large files?`,
    );
  }
  if (files.length > 1 && (name !== undefined || sha256 !== undefined)) {
    throw createEntryError(
      entry,
      `${files.length} files match, which cannot all have one name or SHA-256`,
    );
  }
  return files.toSorted().map((file) => ({
    name: name ?? defaultModelName(file),
    file,
    ...(sha256 && { sha256 }),
    ...(place && { place }),
  }));
}

/** A file is called the same in every workflow of its repository, so that its results can be compared. */
function defaultModelName(file: string): string {
  const name = file.replace(/\.onnx$/i, "").replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  return name.slice(-100).replace(/^[^A-Za-z0-9]+/, "") || "model";
}

function duplicateNameProblems(models: readonly NamedModel[]): Problem[] {
  return [...Map.groupBy(models, ({ name }) => name)].flatMap(([name, sharing]) => {
    if (sharing.length === 1) return [];
    const message = `Models ${sharing.map(modelLocation).join(" and ")} are all named ${name}; give each a name of its own, as NAME=PATH`;
    const place = sharing[1]?.place;
    return { message, ...(place && { place }) };
  });
}

function createEntryError({ file, source, place }: ModelEntry, message: string): InputError {
  const where = place ? `${place.file}, line ${place.line}` : `Input "models"`;
  return new InputError([
    { message: `${where}: ${file ?? source}: ${message}`, ...(place && { place }) },
  ]);
}
