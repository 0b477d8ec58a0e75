import { z } from "zod";
import { boundedText } from "./text/bounded-text.ts";

export const commit = z
  .string()
  .max(64)
  .regex(/^[0-9a-f]{40}([0-9a-f]{24})?$/, {
    error: "must be 40 or 64 lower-case hexadecimal digits",
  })
  .describe("Commit as 40 or 64 lower-case hexadecimal digits.");

const branch = boundedText({ min: 1, max: 255 }).describe(
  "Name of a branch, without `refs/heads/`.",
);

/** What a batch's models are the state of, and what they are compared with. */
export const revision = z.strictObject({
  sha: commit,
  branch: branch.optional(),
  base: z
    .strictObject({
      branch,
      sha: commit.optional().describe("The commit to compare with before all others."),
      mergeBase: commit
        .optional()
        .describe("The commit to compare with where `sha` has no baseline."),
    })
    .optional()
    .describe(
      "What to compare with: the branch's baseline for `sha`, else for `mergeBase`, else its " +
        "newest one.",
    ),
  recordBaseline: z
    .boolean()
    .default(false)
    .describe(
      "Whether the batch's completed jobs whose gates passed become baselines of `suite` and " +
        "`branch`. Needs the scope `baselines:write`.",
    ),
});
export type Revision = z.infer<typeof revision>;
