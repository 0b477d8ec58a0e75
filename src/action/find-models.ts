import { glob, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { modelReference } from "../contract/model.ts";
import { InputError, type Problem } from "./input-error.ts";

/** A model of the batch: a file of the workspace that is still to be uploaded, or a source that the service reads itself. */
export type NamedModel = { readonly name: string } & ({ readonly file: string } | { readonly source: string });

const sourcePattern = /^(https?:\/\/|file:\/\/|upload:)/;
const entryPattern = /^(?:(?<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99})=)?(?<place>.*)$/;

/**
 * The models that the lines of the input name, each file once, in the order of the lines.
 * @throws InputError with every line that names none
 */
export async function findModels(lines: readonly string[], workspace: string): Promise<NamedModel[]> {
  const problems: Problem[] = [];
  const excluded = lines.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
  const models: NamedModel[] = [];
  for (const line of lines.filter((one) => !one.startsWith("!"))) {
    const found = await modelsOf(line, excluded, workspace);
    if ("message" in found) problems.push(found);
    else models.push(...found.filter((model) => !models.some((known) => placeOf(known) === placeOf(model))));
  }
  problems.push(...sharedNames(models));
  if (problems.length > 0) throw new InputError(problems);
  return models;
}

async function modelsOf(line: string, excluded: readonly string[], workspace: string): Promise<NamedModel[] | Problem> {
  const { name, place = "" } = entryPattern.exec(line)?.groups ?? {};
  if (sourcePattern.test(place)) {
    const parsed = modelReference.safeParse({ source: place });
    if (!parsed.success) return { message: `Input "models": ${line}: ${parsed.error.issues[0]?.message}` };
    return [{ source: place, name: name ?? nameOf(new URL(place).pathname) }];
  }
  const files = await filesOf(place, excluded, workspace);
  if ("message" in files) return files;
  if (name !== undefined && files.length > 1) {
    return { message: `Input "models": ${line} matches ${files.length} files, which cannot all be named ${name}` };
  }
  return files.map((file) => ({ file, name: name ?? nameOf(path.relative(workspace, file)) }));
}

async function filesOf(pattern: string, excluded: readonly string[], workspace: string): Promise<string[] | Problem> {
  const found: string[] = [];
  for await (const match of glob(pattern, { cwd: workspace, exclude: [...excluded] })) {
    const file = path.resolve(workspace, match);
    if (!(await stat(file)).isFile()) continue;
    // A link could point at any file of the runner.
    const isInside = !path.relative(await realpath(workspace), await realpath(file)).startsWith("..");
    if (!isInside) return { message: `Input "models": ${match} lies outside of the workspace` };
    found.push(file);
  }
  if (found.length > 0) return found.toSorted();
  return {
    message: `Input "models": ${pattern} matches no file of the workspace ${workspace}; is it checked out, and are large files fetched?`,
  };
}

function placeOf(model: NamedModel): string {
  return "file" in model ? model.file : model.source;
}

/** A file is called the same in every workflow of its repository, so that its results can be compared. */
function nameOf(file: string): string {
  const name = file.replace(/\.onnx$/i, "").replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  return (
    name
      .replace(/^[^A-Za-z0-9]+/, "")
      .slice(-100)
      .replace(/^[^A-Za-z0-9]+/, "") || "model"
  );
}

function sharedNames(models: readonly NamedModel[]): Problem[] {
  const byName = Map.groupBy(models, ({ name }) => name);
  return [...byName].flatMap(([name, sharing]) => {
    if (sharing.length === 1) return [];
    const places = sharing.map(placeOf).join(" and ");
    return {
      message: `Input "models": ${places} are all named ${name}; put a name of its own before each, as NAME=PATH`,
    };
  });
}
