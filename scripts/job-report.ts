import { z } from "zod";
import { artifact } from "../src/contract/jobs/artifact.ts";
import { rangeMethods, recipe } from "../src/contract/jobs/recipe.ts";
import { jobKind } from "../src/contract/jobs/status.ts";
import { target } from "../src/contract/jobs/target.ts";
import { sha256 } from "../src/contract/models/model.ts";

/** What a job's `report.json` says of the work, so that it can be repeated. */
export const jobReport = z.object({
  job: z.string(),
  kind: jobKind,
  model: z.object({ bytes: z.number(), sha256 }),
  target,
  recipe,
  /** What was carried out where the recipe has a goal. */
  foundRecipe: recipe.optional(),
  restoredAtLoad: z.array(z.int().min(0)),
  halved: z.array(z.int().min(0)).optional(),
  /** The way to find ranges where the recipe says `auto`, and whether biases are corrected. */
  calibration: z
    .object({ method: z.enum(rangeMethods).optional(), correctsBiases: z.boolean().optional() })
    .optional(),
  files: z.array(artifact),
  weights: z.array(
    z.object({
      name: z.string(),
      form: z.string().nullable(),
      resultBytes: z.number(),
      error: z.object({ sqnrDb: z.number(), cosine: z.number() }).nullable(),
    }),
  ),
});
export type JobReport = z.infer<typeof jobReport>;
