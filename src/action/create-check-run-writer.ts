import { CheckRunWriter } from "../github/check-run-writer.ts";
import type { GitHub } from "./connect-github.ts";
import type { WorkflowRun } from "./workflow-run.ts";

/** As many as Octokit itself makes of other requests. */
const maxTries = 4;

/** Writes check runs of the commit that the workflow runs for. */
export function createCheckRunWriter(
  github: GitHub,
  { repo, headSha }: Pick<WorkflowRun, "repo" | "headSha">,
): CheckRunWriter {
  return new CheckRunWriter(github, { repo, headSha, maxTries });
}
