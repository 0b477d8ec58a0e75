import { z } from "zod";
import { type FailOn, failOnTable, type JobChecks, jobChecksTable } from "./action.ts";
import { commit } from "./revision.ts";
import { text } from "./text.ts";

/** Check runs that the service keeps up to date on a commit while it works on a batch. */
export const githubReport = z.strictObject({
  repository: z
    .string()
    .max(140)
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]*\/[A-Za-z0-9._-]+$/)
    .describe("As `owner/name`. The service's GitHub App has to be installed in it."),
  sha: commit,
  checkName: text({ min: 1, max: 200 }).describe("Name of the check run of the whole batch."),
  jobChecks: z
    .enum(Object.keys(jobChecksTable) as [JobChecks, ...JobChecks[]])
    .default("auto")
    .describe("Which jobs get check runs of their own."),
  failOn: z
    .enum(Object.keys(failOnTable) as [FailOn, ...FailOn[]])
    .default("gates")
    .describe("When the check run fails."),
  serviceUrl: z
    .url({ protocol: /^https?$/ })
    .max(2000)
    .describe("Address of the service for who follows links of the report, with `/v1`."),
});
export type GithubReport = z.infer<typeof githubReport>;
