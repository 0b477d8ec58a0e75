import type { GithubReport, Places } from "../contract/jobs/github-report.ts";
import type { Step } from "./step.ts";

/** What the service needs to write the step's check runs. */
export function buildGithubReport(
  { inputs, run, identity }: Pick<Step, "inputs" | "run" | "identity">,
  places: Places,
): GithubReport {
  return {
    repository: run.repository,
    sha: run.headSha,
    checkName: identity.checkName,
    jobChecks: inputs["job-checks"],
    failOn: inputs["fail-on"],
    places,
  };
}
