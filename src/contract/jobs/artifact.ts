import { z } from "zod";
import { sha256 } from "../models/model.ts";

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
      .enum(["model", "weights", "stage", "manifest", "report", "graph"])
      .describe(
        "`model`: the ONNX file; `weights`: its external data; `stage`: a stage of the " +
          "pipeline, an ONNX file or its external data; `manifest`: which file holds which " +
          "weight, or how the stages are linked; `report`: what was done to each weight; `graph`: the " +
          "original's nodes with what was done to their weights, as the dashboard draws them.",
      ),
    bytes: z.int().min(0).describe("Size of the file."),
    sha256,
  })
  .meta({ id: "Artifact" });
export type Artifact = z.infer<typeof artifact>;
