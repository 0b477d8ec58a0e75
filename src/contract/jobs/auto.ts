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
  maxPerplexityRatio: z
    .number()
    .positive()
    .optional()
    .describe("Most perplexity of a language model, as a multiple of the original's."),
  maxKlDivergence: z
    .number()
    .min(0)
    .optional()
    .describe("Largest KL divergence of a language model from the original, nats for each token."),
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
        "those after the evaluation's in its data, else generated; of a language model's text, " +
        "windows of it, and without data those of a second text that the service has.",
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

const accuracyGoals = goalNames.filter((name) => name !== "maxBytes");

/** Why the goals do not say what is looked for; undefined where they do. */
export function explainMissingGoal({ minimize, ...goal }: Auto): string | undefined {
  if (minimize === "loss") {
    return goal.maxBytes === undefined ? "minimizes the loss: give `maxBytes`" : undefined;
  }
  if (accuracyGoals.some((name) => goal[name] !== undefined)) return undefined;
  const names = accuracyGoals.map((name) => `\`${name}\``);
  const listed = `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
  return `minimizes bytes: give ${listed}, or minimize the loss`;
}

/** The first of the goals that only language models have, which are run on text. */
export function findLanguageGoal(goal: Goals): string | undefined {
  const names = ["maxPerplexityRatio", "maxKlDivergence"] as const;
  return names.find((name) => goal[name] !== undefined);
}

/** Figures of a result that goals are about. */
export interface GoalFigures {
  readonly bytes: number;
  readonly sqnrDb: number;
  readonly cosine: number;
  /** Null for models whose outputs have no rows. */
  readonly top1Agreement: number | null;
  /** Of language models that are run on text. */
  readonly perplexityRatio?: number;
  readonly klDivergence?: number;
}

/** The goals that figures miss, in words; none where they reach them all. */
export function listMissedGoals(goal: Goals, figures: GoalFigures): string[] {
  return goalNames.flatMap((name) => {
    const limit = goal[name];
    if (limit === undefined) return [];
    const { found, text, isLeast } = describeFigure[name](figures);
    const isReached = found !== undefined && (isLeast ? found >= limit : found <= limit);
    return isReached ? [] : [`${text}, at ${isLeast ? "least" : "most"} ${limit} wanted`];
  });
}

interface DescribedFigure {
  /** Undefined where the model has none. */
  readonly found: number | undefined;
  readonly text: string;
  /** Whether a goal is the least value, and not the most. */
  readonly isLeast: boolean;
}

const describeFigure: Readonly<Record<keyof Goals, (figures: GoalFigures) => DescribedFigure>> = {
  minSqnrDb: ({ sqnrDb }) => ({
    found: sqnrDb,
    text: `SQNR ${sqnrDb.toFixed(2)} dB`,
    isLeast: true,
  }),
  minCosine: ({ cosine }) => ({
    found: cosine,
    text: `cosine ${cosine.toFixed(6)}`,
    isLeast: true,
  }),
  minTop1: ({ top1Agreement }) => ({
    found: top1Agreement ?? undefined,
    text: `top-1 agreement ${top1Agreement?.toFixed(4) ?? "no output with rows"}`,
    isLeast: true,
  }),
  maxPerplexityRatio: ({ perplexityRatio }) => ({
    found: perplexityRatio,
    text: `perplexity ${perplexityRatio?.toFixed(4) ?? "not known"} of the original's`,
    isLeast: false,
  }),
  maxKlDivergence: ({ klDivergence }) => ({
    found: klDivergence,
    text: `KL divergence ${klDivergence?.toFixed(4) ?? "not known"} nats`,
    isLeast: false,
  }),
  maxBytes: ({ bytes }) => ({ found: bytes, text: `${bytes} bytes`, isLeast: false }),
};

/** An agreement or a cosine of 1, and a perplexity of the original's, have no loss, and a logarithm needs some. */
const leastLoss = 1e-9;

/** How far the goals of accuracy are reached, as a ratio of losses in dB; below 0 one is missed. */
export function goalMarginDb(goal: Goals, figures: GoalFigures): number {
  const { minSqnrDb, minCosine, minTop1, maxPerplexityRatio, maxKlDivergence } = goal;
  const { sqnrDb, cosine, top1Agreement, perplexityRatio = Infinity } = figures;
  const { klDivergence = Infinity } = figures;
  const ratioOfLosses = (allowed: number, found: number) =>
    10 * Math.log10((Math.max(0, allowed) + leastLoss) / (Math.max(0, found) + leastLoss));
  const ratio = (allowed: number, found: number) => ratioOfLosses(1 - allowed, 1 - found);
  return Math.min(
    minSqnrDb === undefined ? Infinity : sqnrDb - minSqnrDb,
    minCosine === undefined ? Infinity : ratio(minCosine, cosine),
    minTop1 === undefined ? Infinity : ratio(minTop1, top1Agreement ?? 0),
    maxPerplexityRatio === undefined
      ? Infinity
      : ratioOfLosses(Math.log(maxPerplexityRatio), Math.log(perplexityRatio)),
    maxKlDivergence === undefined ? Infinity : ratioOfLosses(maxKlDivergence, klDivergence),
  );
}
