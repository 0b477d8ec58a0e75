import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
import { type Target, target } from "../contract/target.ts";

/** The targets file cannot be used; the message says why, in full. */
export class TargetsFileError extends Error {
  override readonly name = "TargetsFileError";
}

const targetsFile = z.strictObject({
  targets: z
    .array(target)
    .min(1)
    .refine((targets) => new Set(targets.map(({ name }) => name)).size === targets.length, {
      error: "must not name a target twice",
    }),
});

/** The targets of a YAML file that looks like the answer to `GET /targets`. Throws `TargetsFileError`. */
export async function readTargets(path: string): Promise<Target[]> {
  try {
    return targetsFile.parse(parse(await readFile(path, "utf8"))).targets;
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    throw new TargetsFileError(`Targets file "${path}" cannot be used: ${reason}`, { cause });
  }
}
