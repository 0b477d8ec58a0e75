import { z } from "zod";
import { measuredRatio } from "./latency.ts";
import { textLimits } from "../limits.ts";
import { shownLine } from "../text/shown-line.ts";

/** Most points that a search reports. */
export const maxSearchPoints = 64;
/** Most weights that a search names. */
export const maxSensitiveWeights = 8;

const decibels = z.number().min(-150).max(150);

const point = z.object({
  bytes: z.int().min(0).describe("Of the result."),
  predictedSqnrDb: decibels
    .optional()
    .describe("What was predicted before it was run, dB; absent where all weights have one form."),
  sqnrDb: decibels.describe("Of the worst output on the evaluation's samples, dB."),
  cosine: z.number().min(-1).max(1).describe("Of the worst output on the same samples."),
  top1Agreement: z.number().min(0).max(1).nullable().describe("Of the worst output that has rows."),
  predictedKlDivergence: measuredRatio
    .optional()
    .describe("The same as `predictedSqnrDb` of a language model, nats for each token."),
  klDivergence: measuredRatio.optional().describe("Of a language model on the same samples, nats."),
  perplexityRatio: measuredRatio
    .optional()
    .describe("Of a language model on the same samples, to the original's perplexity."),
  form: shownLine(64).optional().describe("The form of all weights, where it is the only one."),
  chosen: z.boolean().describe("Whether it is the result."),
});
export type SearchPoint = z.infer<typeof point>;

export const searchSummary = z.object({
  reached: z
    .boolean()
    .describe("Whether the result reaches the goals on the evaluation's samples."),
  missed: z
    .array(shownLine(200))
    .max(6)
    .describe("The goals that the result misses, and how near it came."),
  outOfBudget: z
    .boolean()
    .describe("Whether `recipe.auto.budgetSeconds` ended the search: the best until then is kept."),
  data: z
    .enum(["caller", "generated", "builtin"])
    .describe("Where the search's samples came from."),
  samples: z.int().min(1).describe("Samples that it measured on what each weight costs."),
  evaluationSamples: z
    .int()
    .min(1)
    .optional()
    .describe("Samples at the beginning of the same file that are the evaluation's."),
  candidates: z.int().min(0).describe("Models that were run."),
  seconds: z.number().min(0).max(1e8).describe("That the search took."),
  points: z
    .array(point)
    .max(maxSearchPoints)
    .describe(
      "Results that were run on samples which predictions did not see, the smallest first.",
    ),
  mostSensitive: z
    .array(
      z.object({
        name: shownLine(textLimits.name).describe("Of the weight."),
        form: shownLine(64).describe("What the weight was stored as."),
        sqnrDb: decibels
          .optional()
          .describe("Of the worst output where only this weight is so, dB."),
        klDivergence: measuredRatio
          .optional()
          .describe(
            "Of a language model where only this weight is so and all others are in 8 bits, " +
              "nats more than with this one in 8 bits too.",
          ),
      }),
    )
    .max(maxSensitiveWeights)
    .describe(
      "The weights that hurt most in the most accurate form that they can have, of a language " +
        "model in blocks of 4 bits.",
    ),
});
export type SearchSummary = z.infer<typeof searchSummary>;
