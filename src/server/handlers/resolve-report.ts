import type { BatchContents } from "./create-batch.ts";
import type { Caller } from "../../auth/authenticate.ts";
import type { FieldError } from "../../contract/errors.ts";
import type { BatchRequest } from "../../contract/batches/batch.ts";
import {
  type AskedReport,
  checkReportRules,
  mergeGates,
  type ReportRules,
} from "../../contract/batches/report-rules.ts";
import { isPublicRun } from "../../contract/people/is-public-run.ts";
import { hasScope, requirePermission } from "../../contract/people/may.ts";
import { parseRepositoryId, type Workflow } from "../../contract/people/principal.ts";
import { defaultProject } from "../../contract/project.ts";
import type { GitHubApp } from "../../github-app/open-github-app.ts";
import { validationError } from "../http/field-errors.ts";
import type { ServerContext } from "../http/server-context.ts";

type ReportedBatch = BatchRequest & AskedReport;

/**
 * A batch with the report that it asks for. What the check runs of a workflow can be follows from
 * its identity and its trust policy; the request repeats it at most.
 * @throws ServiceError missing_scope, validation_failed, unavailable
 */
export async function resolveReport(
  { github }: ServerContext,
  caller: Caller,
  { report: asked, ...request }: ReportedBatch,
): Promise<BatchContents> {
  requirePermission(caller, "requestReport");
  requireGitHubApp(github);
  const { serviceUrl: _, ...settings } = asked.github;
  const mayRecord = hasScope(caller, "recordBaselines");
  const { workflow } = caller;
  if (workflow === null) {
    requireInstallation(caller);
    return { request, report: { settings, request, isAcceptable: mayRecord } };
  }
  const rules = await requireAllowedReport(github, workflow, { ...request, report: asked });
  const ruled = { ...request, gates: mergeGates(request.gates, rules.gates) };
  const isAcceptable = mayRecord || rules.acceptBaselines;
  const { repository } = workflow;
  const { number: repositoryNumber } = parseRepositoryId(workflow.repositoryId);
  const ownSettings = { ...settings, repository, repositoryNumber };
  return { request: ruled, report: { settings: ownSettings, request: ruled, isAcceptable } };
}

/**
 * The App writes to the repositories of all projects, and nothing says which are a project's.
 * @throws ServiceError validation_failed
 */
function requireInstallation({ project }: Caller): void {
  if (project === defaultProject) return;
  const message =
    `Not available in project "${project}" by a token that no workflow was given: only in ` +
    `"${defaultProject}"`;
  throw validationError([{ pointer: "/report/github", message }]);
}

/** A caller with push access can record and compare without limits. */
function ruledBase(workflow: Workflow): string | null {
  return isPublicRun(workflow) ? workflow.baseRef : null;
}

function requireGitHubApp(github: GitHubApp | undefined): asserts github is GitHubApp {
  if (github) return;
  const message = "Not available: this service has no GitHub App in its settings";
  throw validationError([{ pointer: "/report/github", message }]);
}

/** @throws ServiceError validation_failed where a workflow may not have the batch's report */
export async function requireAllowedReport(
  github: GitHubApp | undefined,
  workflow: Workflow,
  batch: AskedReport,
): Promise<ReportRules> {
  requireGitHubApp(github);
  const { issuer } = parseRepositoryId(workflow.repositoryId);
  if (!github.isIssuer(issuer)) {
    const message = `Not available: the issuer of the workflow's identity is "${issuer}", not the one of ${github.webUrl}`;
    throw validationError([{ pointer: "/report/github", message }]);
  }
  const { repository, sha } = batch.report.github;
  if (workflow.repository.toLowerCase() !== repository.toLowerCase()) {
    const own = `"${workflow.repository}", whose workflow the access token was given to`;
    const message = `Must be ${own}`;
    throw validationError([{ pointer: "/report/github/repository", message }]);
  }
  const { report: rules } = workflow;
  if (rules === null) {
    const message = "Not available: the trust policy of the access token allows no check runs";
    throw validationError([{ pointer: "/report/github", message }]);
  }
  const fields: FieldError[] = checkReportRules(rules, batch, ruledBase(workflow));
  if (fields.length > 0) throw validationError(fields);
  const own = await findOwnCommit(github, workflow);
  if (sha === own) return rules;
  const message = `Must be the commit that the workflow runs for, ${own ?? "which is not known"}`;
  throw validationError([{ pointer: "/report/github/sha", message }]);
}

const pullRequestRef = /^refs\/pull\/\d+\/merge$/;

/**
 * The commit whose state a run shows: the last one of a pull request, where GitHub runs for its
 * merge. Other runs that strangers can cause are for a commit that is not theirs.
 */
async function findOwnCommit(github: GitHubApp, run: Workflow): Promise<string | undefined> {
  const { event, ref, repository, commit } = run;
  if (!isPublicRun(run)) return commit;
  if (event !== "pull_request" || !pullRequestRef.test(ref)) return undefined;
  const { number: repositoryNumber } = parseRepositoryId(run.repositoryId);
  return github.findMergedCommit({ repository, repositoryNumber }, commit);
}
