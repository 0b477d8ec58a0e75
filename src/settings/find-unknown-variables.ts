import type { z } from "zod";

/** Variables that look like settings and are none, such as misspelt ones. */
export function findUnknownVariables(
  { shape }: z.ZodObject,
  environment: NodeJS.ProcessEnv,
): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith("MOS_") && !Object.hasOwn(shape, name))
    .toSorted();
}
