import { z } from "zod";
import {
  type ConfiguredTarget,
  configuredTarget,
} from "../contract/custom-resources/target-pod.ts";
import { readYamlFile } from "./read-yaml-file.ts";

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
