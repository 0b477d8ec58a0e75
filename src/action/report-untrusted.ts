import * as core from "@actions/core";
import type { Step } from "./step.ts";
import { writeReport } from "./write-report.ts";

/** Reports that the step can do nothing, as GitHub gives the workflow no credentials. */
export async function reportUntrusted(step: Step): Promise<void> {
  const { run, identity, reporter, environment } = step;
  const verdict = { conclusion: "neutral" as const, title: "Nothing was compressed" };
  const origin = run.untrusted === "dependabot" ? "of Dependabot" : "from forks";
  const failureMessage = [
    `GitHub gives workflows of pull requests ${origin} neither secrets nor OIDC tokens,`,
    "so that the service cannot know this one.",
    "A maintainer can run the workflow on a branch of the repository.",
  ].join(" ");
  const report = { name: identity.checkName, url: run.url, rows: [], failureMessage };
  core.notice(`${verdict.title}: ${failureMessage}`);
  await writeReport(report, verdict, environment);
  // The token of a fork's workflow may write nothing.
  if (run.untrusted !== "fork") await reporter?.complete(report, verdict, []);
}
