import { z } from "zod";
import { maxPipelineStages } from "./pipeline.ts";
import { sha256 } from "../models/model.ts";

/** Most shards of a model's weights. Each is a file that readers keep open. */
export const maxShards = 1000;

/**
 * Most files of a job: its shards, the model and the external data of each stage, and besides the
 * model, the manifests of shards and stages, the report, the graph and the recipe.
 */
export const maxArtifacts = maxShards + 2 * maxPipelineStages + 6;

export const artifactName = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/, {
    error: "must be 1 to 200 letters, digits, '.', '_' or '-', the first a letter or digit",
  })
  .describe("File name, unique within the job.");

/** A file that a job produced. */
export const artifact = z
  .object({
    name: artifactName,
    kind: z
      .enum([
        "model",
        "weights",
        "stage",
        "manifest",
        "report",
        "graph",
        "recipe",
        "description",
        "diff",
        "configuration",
        "archive",
      ])
      .describe(
        "`model`: the ONNX file; `weights`: its external data; `stage`: a stage of the " +
          "pipeline, an ONNX file or its external data; `manifest`: which file holds which " +
          "weight, or how the stages are linked; `report`: what was done to each weight; `graph`: the " +
          "nodes of original and result with what was done to the weights, as the dashboard draws them; " +
          "`recipe`: what a search found for its goal, to be run again; " +
          "`description`: what tells the original from other models; `diff`: how it differs from the " +
          "baseline's; " +
          "`configuration`: what ONNX Runtime GenAI reads beside a language model, such as its " +
          "tokenizer; `archive`: all files of a language model's folder, as tar.",
      ),
    bytes: z.int().min(0).describe("Size of the file."),
    sha256,
    missing: z
      .boolean()
      .optional()
      .describe(
        "Whether the file was not stored any more when the job was recorded again, after its " +
          "records had been restored from a backup that is older than the file.",
      ),
  })
  .meta({ id: "Artifact" });
export type Artifact = z.infer<typeof artifact>;
