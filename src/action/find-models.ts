import { glob, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { formatProblem } from "../contract/format-problem.ts";
import type { Place } from "../contract/batches/github-report.ts";
import { modelReference } from "../contract/models/model.ts";
import { parseInput } from "../contract/parse-input.ts";
import { redactSource } from "../contract/text/redact-source.ts";
import { InputError, type InputProblem } from "./explain-error.ts";
import type { ModelEntry } from "./model-entry.ts";
import { errorMessage } from "../log/error-message.ts";

/** A model of the batch: a file to upload, or a source from which the service reads it. */
export type NamedModel = {
  readonly name: string;
  readonly sha256?: string | undefined;
  readonly place?: Place | undefined;
} & (
  | {
      /** Relative to the workspace, with slashes on every system. */
      readonly file: string;
    }
  | { readonly source: string }
);

interface FileSearch {
  readonly workspace: string;
  /** The workspace, without symbolic links. */
  readonly root: string;
  readonly excluded: readonly string[];
}

/**
 * The models that the entries match, each file once, in the order of the entries. What an entry says
 * of one model counts, though the glob of another matches it, too.
 * @throws InputError with all entries that match none
 */
export async function findModels(
  entries: readonly ModelEntry[],
  workspace: string,
): Promise<NamedModel[]> {
  const isExclusion = ({ file }: ModelEntry) => file?.startsWith("!") === true;
  const excluded = entries.filter(isExclusion).flatMap(({ file }) => file?.slice(1) ?? []);
  const search = { workspace, root: await realpath(workspace), excluded };
  const problems: InputProblem[] = [];
  const models = new Map<string, NamedModel>();
  const described = new Set<string>();
  for (const entry of entries.filter((each) => !isExclusion(each))) {
    try {
      for (const model of await resolveEntry(entry, search)) {
        const location = modelLocation(model);
        const isDescribed = entry.name !== undefined || entry.sha256 !== undefined;
        if (isDescribed && described.has(location)) {
          throw createEntryError(entry, "another entry says what this model is, too");
        }
        if (isDescribed) described.add(location);
        if (isDescribed || !models.has(location)) models.set(location, model);
      }
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push(...error.problems);
    }
  }
  problems.push(...duplicateNameProblems([...models.values()]));
  if (problems.length > 0) throw new InputError(problems);
  return [...models.values()];
}

function modelLocation(model: NamedModel): string {
  return "file" in model ? model.file : model.source;
}

async function resolveEntry(entry: ModelEntry, search: FileSearch): Promise<NamedModel[]> {
  return entry.file === undefined ? [resolveSource(entry)] : resolveFiles(entry, search);
}

function resolveSource(entry: ModelEntry): NamedModel {
  const { name, source = "", sha256, place } = entry;
  const { problems } = parseInput(modelReference, { source, name });
  if (problems) throw createEntryError(entry, problems.map(formatProblem).join("; "));
  return { name: name ?? defaultModelName(new URL(source).pathname), source, sha256, place };
}

async function resolveFiles(entry: ModelEntry, search: FileSearch): Promise<NamedModel[]> {
  const { name, sha256, place } = entry;
  const files = await matchFiles(entry, search);
  if (files.length === 0) {
    const where = `no file of the workspace ${search.workspace} matches`;
    const advice = entry.file?.includes(",")
      ? "name one glob in each line or entry"
      : "is the repository checked out, with large files?";
    throw createEntryError(entry, `${where}; ${advice}`);
  }
  if (files.length > 1 && (name !== undefined || sha256 !== undefined)) {
    const found = `${files.length} files match`;
    throw createEntryError(entry, `${found}, which cannot all have one name or SHA-256`);
  }
  return files
    .toSorted()
    .map((file) => ({ name: name ?? defaultModelName(file), file, sha256, place }));
}

async function matchFiles(
  entry: ModelEntry,
  { workspace, root, excluded }: FileSearch,
): Promise<string[]> {
  const files: string[] = [];
  for await (const match of glob(entry.file ?? "", { cwd: workspace, exclude: [...excluded] })) {
    const file = path.resolve(workspace, match);
    const real = await realpath(file).catch((cause: unknown) => {
      const found = `${match} cannot be read: ${errorMessage(cause)}`;
      throw createEntryError(entry, `${found}; is what it links to fetched?`, cause);
    });
    if (!(await stat(real)).isFile()) continue;
    // A symbolic link could lead to any file of the runner.
    if (!isBelow(root, real)) {
      throw createEntryError(entry, `${match} lies outside of the workspace`);
    }
    files.push(path.relative(workspace, file).replaceAll(path.sep, "/"));
  }
  return files;
}

/** Whether a file lies in a folder. Its name may begin with dots, or it is on another drive. */
export function isBelow(folder: string, file: string): boolean {
  const [first] = path.relative(folder, file).split(path.sep);
  return first !== ".." && !path.isAbsolute(path.relative(folder, file));
}

/** A name that is the same in all workflows of a repository, so that results are comparable. */
function defaultModelName(file: string): string {
  const name = file.replace(/\.onnx$/i, "").replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  return name.slice(-100).replace(/^[^A-Za-z0-9]+/, "") || "model";
}

function duplicateNameProblems(models: readonly NamedModel[]): InputProblem[] {
  return [...Map.groupBy(models, ({ name }) => name)].flatMap(([name, sharing]) => {
    if (sharing.length === 1) return [];
    const places = sharing.map((model) => redactSource(modelLocation(model))).join(" and ");
    const advice = "give each a name of its own, as NAME=PATH";
    const message = `Models ${places} are all named ${name}; ${advice}`;
    return { message, place: sharing[1]?.place };
  });
}

function createEntryError(
  { file, source = "", place }: ModelEntry,
  message: string,
  cause?: unknown,
): InputError {
  const where = place ? `${place.file}, line ${place.line}` : `Input "models"`;
  const said = file ?? redactSource(source);
  return new InputError([{ message: `${where}: ${said}: ${message}`, place }], { cause });
}
