import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import * as core from "@actions/core";
import { conclude, type Verdict } from "../report/conclude.ts";
import { renderComment } from "../report/render-batch.ts";
import type { Report } from "../report/report.ts";
import { checkRunsOf } from "./check-runs.ts";
import { compress, type Compressed } from "./compress.ts";
import { connectGitHub, type GitHub } from "./connect-github.ts";
import { credentialsOf } from "./connect-service.ts";
import { downloadArtifacts } from "./download-artifacts.ts";
import { readInputs } from "./read-inputs.ts";
import { Reporter } from "./reporter.ts";
import type { Step, Surroundings } from "./step.ts";
import { digest, stepIdentity } from "./step-identity.ts";
import { writeStickyComment } from "./sticky-comment.ts";
import { readWorkflowRun } from "./workflow-run.ts";
import { annotate, logResults, setOutputs, writeReport } from "./write-results.ts";

/** The runner waits 10 s for a step that it cancels. */
const goodbyeMs = 5_000;

/** The step itself: submits a batch, follows it and tells what came of it. */
export async function runMain(surroundings: Surroundings): Promise<void> {
  const { environment, dispatcher, signal } = surroundings;
  const inputs = readInputs(environment);
  const run = await readWorkflowRun(environment);
  const credentials = credentialsOf(inputs, run, environment);
  const identity = stepIdentity(run, inputs);
  const token = inputs["github-token"];
  const github = token === undefined ? undefined : connectGitHub({ token, apiUrl: run.apiUrl, dispatcher });
  const reporter = github && reporterOf(github, { inputs, run, identity });
  const step = { ...surroundings, inputs, run, identity, github, reporter };
  if (credentials === undefined) {
    await tellUntrusted(step);
    return;
  }
  const begun = inputs.wait && reporter?.begin({ name: identity.checkName, url: run.url, rows: [] });
  const compressed = await compress(step, credentials);
  await begun;
  const told = tell(step, compressed);
  await (signal.aborted ? Promise.race([told, delay(goodbyeMs)]) : told);
}

function reporterOf(github: GitHub, { inputs, run, identity }: Pick<Step, "inputs" | "run" | "identity">): Reporter {
  return new Reporter({
    checks: checkRunsOf(github, { ...run, detailsUrl: run.url }),
    checkName: identity.checkName,
    externalId: digest(identity.labels),
    jobChecks: inputs["job-checks"],
    failOn: inputs["fail-on"],
  });
}

async function tell(step: Step, { report, client, annotations }: Compressed): Promise<void> {
  const { inputs, environment, github, reporter, signal } = step;
  const verdict = conclude(report, inputs["fail-on"]);
  logResults(report);
  const folder = await writeReport(report, verdict, environment);
  const isLeftToService = !inputs.wait && report.broken === undefined;
  const isTold = isLeftToService || (await reporter?.complete(report, verdict, annotations));
  if (!isTold) annotate(annotations);
  if (inputs.comment && inputs.wait && github) await comment(github, step, { report, verdict });
  if (inputs.download && client) {
    const artifacts = path.join(folder, "artifacts");
    await downloadArtifacts(client, report.rows, { folder: artifacts, signal });
    setOutputs({ artifacts });
  }
  const isGood = [null, "success", "neutral"].includes(verdict.conclusion);
  if (!isGood) core.setFailed([verdict.title, ...(report.trouble === undefined ? [] : [report.trouble])].join("\n"));
}

/** A comment is worth no failure. */
async function comment(
  github: GitHub,
  { run, identity }: Step,
  { report, verdict }: { report: Report; verdict: Verdict },
) {
  if (run.pullRequest === undefined) return;
  const marker = `<!-- model-optimization ${digest(identity.checkName)} -->`;
  const place = { repository: run.repository, pullRequest: run.pullRequest, marker };
  try {
    await writeStickyComment(github, place, renderComment(report, verdict, marker));
  } catch (error) {
    core.warning(`No comment: ${String(error)}. It needs \`permissions: pull-requests: write\`.`);
  }
}

/** Nothing can be done for changes of somebody else, and that is nobody's fault. */
async function tellUntrusted({ run, identity, reporter, environment }: Step): Promise<void> {
  const whose = run.untrusted === "dependabot" ? "of Dependabot" : "from forks";
  const trouble = `GitHub gives workflows of pull requests ${whose} neither secrets nor OIDC tokens, so that the service cannot know this one. A maintainer can run the workflow on a branch of the repository.`;
  const verdict = { conclusion: "neutral" as const, title: "Nothing was compressed" };
  const report = { name: identity.checkName, url: run.url, rows: [], trouble };
  core.notice(`${verdict.title}: ${trouble}`);
  await writeReport(report, verdict, environment);
  // The token of a fork's workflow may write nothing.
  if (run.untrusted !== "fork") await reporter?.complete(report, verdict, []);
}
