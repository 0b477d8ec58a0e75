import { z } from "zod";

const commitOfBranch = z.object({ ref: z.string(), sha: z.string() });

/**
 * The fields that the action reads, of the payloads of all events that start workflows. GitHub has
 * null for what an event lacks, such as the `workflow_run` of a deployment that none made.
 */
export const workflowEvent = z.object({
  repository: z.object({ id: z.int(), default_branch: z.string().nullish() }).partial().nullish(),
  before: z.string().nullish(),
  /** The issue or pull request that a comment is on; the event does not state its commit. */
  issue: z.unknown().optional(),
  pull_request: z
    .object({
      number: z.int(),
      head: commitOfBranch.extend({ repo: z.object({ full_name: z.string() }).nullish() }),
      base: commitOfBranch,
    })
    .nullish(),
  merge_group: z
    .object({ head_sha: z.string(), base_sha: z.string(), base_ref: z.string() })
    .nullish(),
  workflow_run: z
    .object({
      head_sha: z.string(),
      /** Those of the branch, also to a repository that this one is a fork of. */
      pull_requests: z
        .array(
          z.object({
            number: z.int(),
            base: commitOfBranch.extend({ repo: z.object({ id: z.int() }) }),
          }),
        )
        .default([]),
    })
    .nullish(),
});
export type WorkflowEvent = z.infer<typeof workflowEvent>;
