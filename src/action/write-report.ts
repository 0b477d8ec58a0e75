import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as core from "@actions/core";
import { isForbidden, maxTries } from "./check-run-reporter.ts";
import { setOutputs } from "./compress.ts";
import type { GitHub } from "./connect-github.ts";
import type { ReportingStep, Step } from "./step.ts";
import { digest } from "./workflow-run.ts";
import type { RepositoryName } from "../github/check-run-requests.ts";
import { repeatUnanswered } from "../github/check-run-writer.ts";
import { errorMessage } from "../log/error-message.ts";
import type { Annotation } from "../report/build-annotations.ts";
import type { Verdict } from "../report/conclude.ts";
import { renderComment, renderJobSummary } from "../report/render-batch.ts";
import { reportDocument } from "../report/report-document.ts";
import type { Report } from "../report/report.ts";

/**
 * Writes the report to files in a new folder, to the job's summary and to the step's outputs. Gives
 * the folder.
 */
export async function writeReport(
  report: Report,
  verdict: Verdict,
  environment: NodeJS.ProcessEnv,
): Promise<string> {
  const temporary = environment["RUNNER_TEMP"] ?? tmpdir();
  const folder = await mkdtemp(path.join(temporary, "model-optimization-"));
  const markdown = renderJobSummary(report, verdict);
  const files = {
    "report-json": path.join(folder, "report.json"),
    "report-markdown": path.join(folder, "report.md"),
  };
  await writeFile(files["report-json"], JSON.stringify(reportDocument(report, verdict)));
  await writeFile(files["report-markdown"], markdown);
  if (environment["GITHUB_STEP_SUMMARY"]) await core.summary.addRaw(markdown).write();
  setOutputs({ ...files, conclusion: verdict.conclusion ?? "pending", ...jobCountOutputs(report) });
  return folder;
}

function jobCountOutputs({ rows }: Report) {
  return {
    jobs: rows.length,
    completed: rows.filter(({ status }) => status === "Completed").length,
    failed: rows.filter(({ status }) => status === "Failed").length,
    "gates-failed": rows.filter(({ gatesFailed }) => gatesFailed).length,
  };
}

/** The runner takes no more of one step. */
const maxAnnotations = 10;

/** Annotates lines by commands of the runner, where the workflow may write no check runs. */
export function writeAnnotations(annotations: readonly Annotation[]): void {
  for (const { place, level, title, message } of annotations.slice(0, maxAnnotations)) {
    const issueCommand = level === "failure" ? core.error : core.warning;
    issueCommand(message, { title, file: place.file, startLine: place.line });
  }
}

/** Comments on the pull request, where the workflow asks for it. A failure is a warning. */
export async function writeComment(
  { inputs, run, identity, github }: Step,
  report: Report,
  verdict: Verdict,
): Promise<void> {
  const { repo, pullRequest, runId, headSha } = run;
  if (!inputs.comment || !github || pullRequest === undefined) return;
  const mark = `<!-- model-optimization ${digest(identity.checkName)}`;
  const marker = `${mark} ${runId} -->`;
  const body = renderComment(report, verdict, { marker, sha: headSha });
  try {
    const place = { repo, pullRequest, mark, runId };
    await repeatUnanswered(maxTries, async () => writeStickyComment(github, place, body));
  } catch (error) {
    const advice = isForbidden(error) ? ". It needs `permissions: pull-requests: write`." : "";
    core.warning(`No comment: ${errorMessage(error)}${advice}`);
  }
}

interface CommentPlace {
  readonly repo: RepositoryName;
  readonly pullRequest: number;
  /** Invisible text at the start of the comment, so that later runs find it. */
  readonly mark: string;
  /** Of the run, after the mark. GitHub numbers later runs higher. */
  readonly runId: string;
}

/** Creates the token's own comment with the mark, or updates it unless it is a later run's. */
async function writeStickyComment(
  github: GitHub,
  { repo, pullRequest, mark, runId }: CommentPlace,
  body: string,
): Promise<void> {
  const place = { ...repo, issue_number: pullRequest };
  const pages = github.paginate.iterator(github.rest.issues.listComments, {
    ...place,
    per_page: 100,
  });
  // Others' comments could start with the mark, too. REST answers no app who it is.
  const { viewer } = await github.graphql<{ viewer: { login: string } }>("{ viewer { login } }");
  for await (const { data } of pages) {
    const own = data.find(
      ({ user, body: text }) => user?.login === viewer.login && text?.startsWith(mark),
    );
    if (own) {
      const [, earlier = "0"] = /^ (\d+) -->/.exec(own.body?.slice(mark.length) ?? "") ?? [];
      if (Number(earlier) > Number(runId)) return;
      await github.rest.issues.updateComment({ ...repo, comment_id: own.id, body });
      return;
    }
  }
  // Octokit would write a second one where only the answer was lost.
  await github.rest.issues.createComment({ ...place, body, request: { retries: 0 } });
}

const untrustedMessages = {
  fork:
    "GitHub gives workflows of pull requests from forks neither secrets nor OIDC tokens, so that the " +
    "service cannot know this one. A maintainer can run the workflow on a branch of the repository.",
  dependabot:
    "GitHub gives workflows that Dependabot starts no secrets but Dependabot's own, so that the " +
    "service cannot know this one. Add the token to the repository's Dependabot secrets as well.",
} as const;

/** Reports that the step can do nothing, as GitHub gives the workflow no credentials. */
export async function reportUntrusted(step: ReportingStep): Promise<void> {
  const { run, identity, reporter, environment } = step;
  const verdict = { conclusion: "neutral" as const, title: "Nothing was compressed" };
  const failureMessage = untrustedMessages[run.untrusted ?? "fork"];
  const report = { name: identity.checkName, url: run.url, rows: [], failureMessage };
  core.notice(`${verdict.title}: ${failureMessage}`);
  await writeReport(report, verdict, environment);
  // The token of a fork's workflow may write nothing.
  if (run.untrusted !== "fork") await reporter?.complete(report, verdict, []);
}
