import { z } from "zod";
import { type Target, target } from "../contract/target.ts";
import { readYamlFile } from "./read-yaml-file.ts";

const targetsFile = z.strictObject({
  targets: z
    .array(target)
    .min(1)
    .refine((targets) => new Set(targets.map(({ name }) => name)).size === targets.length, {
      error: "must not name a target twice",
    }),
});

/**
 * The targets of a YAML file in the form of the response to `GET /targets`.
 * @throws StartError
 */
export async function readTargets(path: string): Promise<Target[]> {
  const { targets } = await readYamlFile(targetsFile, { title: "Targets file", path });
  return targets;
}
