import { z } from "zod";
import { type Artifact, artifactName } from "./artifact.ts";
import { formatBytes } from "../text/format-bytes.ts";
import { formatCount } from "../text/format-count.ts";

export const weightFiles = z
  .object({
    files: z.int().min(1).describe("How many."),
    bytes: z.int().min(0).describe("Of all of them."),
    archive: artifactName.nullable().describe("The file that has the model with all of them."),
  })
  .nullable()
  .default(null)
  .describe(
    "Files of external data that an ONNX file needs in its folder; null for a model that is whole, " +
      "and for other files.",
  );
type WeightFiles = z.infer<typeof weightFiles>;

/** The files of weights that a file of a job needs beside it. */
export function findWeightFiles(artifacts: readonly Artifact[], name: string): WeightFiles {
  const isModel = artifacts.some((file) => file.name === name && file.kind === "model");
  const weights = artifacts.filter(({ kind }) => kind === "weights");
  if (!isModel || weights.length === 0) return null;
  const bytes = weights.reduce((sum, file) => sum + file.bytes, 0);
  const archive = artifacts.find(({ kind }) => kind === "archive")?.name ?? null;
  return { files: weights.length, bytes, archive };
}

/** `model.onnx does not hold its weights: it needs 2 more files, 3.10 GB, in the same folder`. */
export function sayWeightFiles(name: string, needed: NonNullable<WeightFiles>): string {
  const files = formatCount(needed.files, "more file");
  return `${name} does not hold its weights: it needs ${files}, ${formatBytes(needed.bytes)}, in the same folder`;
}
