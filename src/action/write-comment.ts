import * as core from "@actions/core";
import type { Verdict } from "../report/conclude.ts";
import { renderComment } from "../report/render-batch.ts";
import type { Report } from "../report/report.ts";
import type { Step } from "./step.ts";
import { digest } from "./step-identity.ts";
import { writeStickyComment } from "./sticky-comment.ts";

/** Comments on the pull request, where the workflow asks for it. A failure is a warning. */
export async function writeComment(
  { inputs, run, identity, github }: Step,
  report: Report,
  verdict: Verdict,
): Promise<void> {
  const { repo, pullRequest } = run;
  if (!inputs.comment || !github || pullRequest === undefined) return;
  const marker = `<!-- model-optimization ${digest(identity.checkName)} -->`;
  const body = renderComment(report, verdict, marker);
  try {
    await writeStickyComment(github, { repo, pullRequest, marker }, body);
  } catch (error) {
    core.warning(`No comment: ${String(error)}. It needs \`permissions: pull-requests: write\`.`);
  }
}
