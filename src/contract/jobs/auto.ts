import { z } from "zod";

/** Most points of the front that are verified and reported. */
const maxFrontPoints = 32;

/** The goals that a recipe can be searched for. */
export const goals = z.strictObject({
  minSqnrDb: z.number().min(-150).max(150).optional().describe("Least SQNR of any output, dB."),
  minCosine: z
    .number()
    .min(-1)
    .max(1)
    .optional()
    .describe("Least cosine similarity of any output."),
  minTop1: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe(
      "Least share of rows of any output whose largest element is where the original has it.",
    ),
  maxBytes: z.int().min(1).optional().describe("Most bytes of the result's files."),
});
export type Goals = z.infer<typeof goals>;

export const goalNames = goals.keyof().options;

export const auto = z.strictObject({
  ...goals.shape,
  minimize: z
    .enum(["bytes", "loss"])
    .describe(
      "`bytes`: the smallest result that reaches the goals of accuracy. `loss`: the most " +
        "accurate one of `maxBytes` at most.",
    ),
  samples: z
    .int()
    .min(1)
    .max(1024)
    .describe(
      "Samples to measure on what each weight costs, at most. They are the calibration's, else " +
        "those after the evaluation's in its data, else generated.",
    ),
  points: z
    .int()
    .min(0)
    .max(maxFrontPoints)
    .describe("Points of the front of size and loss that are verified for the report besides."),
  budgetSeconds: z
    .number()
    .min(1)
    .max(86_400)
    .describe("Seconds after which the search ends with the best that it has found."),
});
export type Auto = z.infer<typeof auto>;

/** Of recipes that are searched for. */
export const defaultAuto: Auto = { minimize: "bytes", samples: 16, points: 6, budgetSeconds: 900 };

/** Why the goals say nothing of what is looked for; undefined where they do. */
export function explainMissingGoal({ minimize, ...goal }: Auto): string | undefined {
  const { minSqnrDb, minCosine, minTop1, maxBytes } = goal;
  if (minimize === "loss") {
    return maxBytes === undefined ? "minimizes the loss: give `maxBytes`" : undefined;
  }
  const hasAccuracy = [minSqnrDb, minCosine, minTop1].some((each) => each !== undefined);
  if (hasAccuracy) return undefined;
  return "minimizes bytes: give `minSqnrDb`, `minCosine` or `minTop1`, or minimize the loss";
}

/** Figures of a result that goals are about. */
export interface GoalFigures {
  readonly bytes: number;
  readonly sqnrDb: number;
  readonly cosine: number;
  /** Null for models whose outputs have no rows. */
  readonly top1Agreement: number | null;
}

/** The goals that figures miss, in words; none where they reach them all. */
export function listMissedGoals(goal: Goals, figures: GoalFigures): string[] {
  const { minSqnrDb, minCosine, minTop1, maxBytes } = goal;
  const { bytes, sqnrDb, cosine, top1Agreement } = figures;
  const missed: string[] = [];
  if (minSqnrDb !== undefined && sqnrDb < minSqnrDb) {
    missed.push(`SQNR ${sqnrDb.toFixed(2)} dB, at least ${minSqnrDb} wanted`);
  }
  if (minCosine !== undefined && cosine < minCosine) {
    missed.push(`cosine ${cosine.toFixed(6)}, at least ${minCosine} wanted`);
  }
  if (minTop1 !== undefined && (top1Agreement ?? 0) < minTop1) {
    const found = top1Agreement === null ? "no output with rows" : top1Agreement.toFixed(4);
    missed.push(`top-1 agreement ${found}, at least ${minTop1} wanted`);
  }
  if (maxBytes !== undefined && bytes > maxBytes) {
    missed.push(`${bytes} bytes, at most ${maxBytes} wanted`);
  }
  return missed;
}

/** An agreement or a cosine of 1 has no loss, and a logarithm needs some. */
const leastLoss = 1e-9;

/** How far the goals of accuracy are reached, as a ratio of losses in dB; below 0 one is missed. */
export function goalMarginDb(goal: Goals, figures: GoalFigures): number {
  const { minSqnrDb, minCosine, minTop1 } = goal;
  const { sqnrDb, cosine, top1Agreement } = figures;
  const ratio = (allowed: number, found: number) =>
    10 * Math.log10((1 - allowed + leastLoss) / (1 - found + leastLoss));
  return Math.min(
    minSqnrDb === undefined ? Infinity : sqnrDb - minSqnrDb,
    minCosine === undefined ? Infinity : ratio(minCosine, cosine),
    minTop1 === undefined ? Infinity : ratio(minTop1, top1Agreement ?? 0),
  );
}
