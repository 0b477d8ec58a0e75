import { readFile } from "node:fs/promises";
import { z } from "zod";
import { parseYaml, StartError } from "./parse-environment.ts";
import {
  type ConfiguredTarget,
  configuredTarget,
} from "../contract/custom-resources/target-pod.ts";
import { formatProblems } from "../contract/format-problem.ts";
import { parseInput } from "../contract/parse-input.ts";

const targetsFile = z.strictObject({
  targets: z
    .array(configuredTarget)
    .min(1)
    .refine((targets) => new Set(targets.map(({ name }) => name)).size === targets.length, {
      error: "must not name a target twice",
    }),
});

/**
 * The targets of a YAML file: those of the response to `GET /targets`, with what their pods get.
 * @throws StartError
 */
export async function readTargets(path: string): Promise<ConfiguredTarget[]> {
  const { targets } = await readYamlFile(targetsFile, { title: "Targets file", path });
  return targets;
}

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
    return parseYaml(await readFile(path, "utf8"));
  } catch (cause) {
    throw new StartError(`${title} "${path}" cannot be used: ${String(cause)}`, { cause });
  }
}
