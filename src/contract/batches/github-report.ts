import { z } from "zod";
import { type FailOn, failOnTable, type JobChecks, jobChecksTable } from "./action.ts";
import { boundedText } from "../text/bounded-text.ts";
import { gateName } from "../jobs/gate-table.ts";
import { textLimits } from "../limits.ts";
import { commit } from "../revision.ts";

const place = z.strictObject({
  file: boundedText({ min: 1, max: 4096 })
    .regex(/^(?!\.{0,2}\/)/, { error: "must be relative to the repository's root, without ./" })
    .describe("Relative to the repository's root, such as `models/batch.yaml`."),
  line: z.int().min(1).max(2_147_483_647).describe("Counted from 1."),
});
/** A line of a file in the repository. */
export type Place = z.infer<typeof place>;

const places = z.strictObject({
  models: z
    .array(z.strictObject({ model: z.string().max(100), ...place.shape }))
    .max(1000)
    .describe("By the models' names."),
  gates: z
    .array(z.strictObject({ gate: gateName, ...place.shape }))
    .max(gateName.options.length)
    .describe("Other gates are annotated at their models."),
});
/** Lines of the repository that name the models and gates of a batch. */
export type Places = z.infer<typeof places>;

/** Check runs that the service keeps up to date on a commit while it works on a batch. */
export const githubReport = z.strictObject({
  repository: z
    .string()
    .max(140)
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]*\/[A-Za-z0-9._-]+$/, { error: "must be OWNER/NAME" })
    .describe("As `owner/name`. The service's GitHub App has to be installed in it."),
  sha: commit,
  checkName: boundedText({ min: 1, max: textLimits.name }).describe(
    "Name of the check run of the whole batch.",
  ),
  jobChecks: z
    .enum(Object.keys(jobChecksTable) as [JobChecks, ...JobChecks[]])
    .default("auto")
    .describe("Which jobs get check runs of their own."),
  failOn: z
    .enum(Object.keys(failOnTable) as [FailOn, ...FailOn[]])
    .default("gates")
    .describe("When the check run fails."),
  serviceUrl: z
    .string()
    .max(2000)
    .optional()
    .describe("Not used any more: links lead to the address in the service's settings."),
  places: places
    .optional()
    .describe(
      "Where the repository names the models and gates. Their failures are annotated at these " +
        "lines.",
    ),
});
export type GithubReport = z.infer<typeof githubReport>;
