import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import type { z } from "zod";
import { formatProblems } from "../contract/format-problem.ts";
import { parseInput } from "../contract/parse-input.ts";
import { StartError } from "./start-error.ts";

interface YamlFile {
  /** What the file is, for the message. */
  readonly title: string;
  readonly path: string;
}

/** @throws StartError that names every error of the file */
export async function readYamlFile<Content>(
  schema: z.ZodType<Content>,
  { title, path }: YamlFile,
): Promise<Content> {
  const { data, problems } = parseInput(schema, await readYaml({ title, path }));
  if (problems === undefined) return data;
  throw new StartError(`${title} "${path}" cannot be used:\n${formatProblems(problems)}`);
}

async function readYaml({ title, path }: YamlFile): Promise<unknown> {
  try {
    return parse(await readFile(path, "utf8"));
  } catch (cause) {
    throw new StartError(`${title} "${path}" cannot be used: ${String(cause)}`, { cause });
  }
}
