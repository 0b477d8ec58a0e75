import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
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
  try {
    return schema.parse(parse(await readFile(path, "utf8")));
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    throw new StartError(`${title} "${path}" cannot be used: ${reason}`, { cause });
  }
}
