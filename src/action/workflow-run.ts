import { createHash } from "node:crypto";
import type { context } from "@actions/github";
import type { Inputs } from "./inputs.ts";
import { findTriggeringCommit, type TriggeringCommit } from "./triggering-commit.ts";
import { type WorkflowEvent, workflowEvent } from "./workflow-event.ts";
import { joinLines } from "../contract/text/hidden-characters.ts";
import type { RepositoryName } from "../github/check-run-requests.ts";
import { truncateToBytes, utf8ByteLength } from "../report/markdown.ts";

/** The run as `@actions/github` reads it from the runner's environment. */
export type WorkflowContext = typeof context;

/** Where and why the step runs. */
export interface WorkflowRun extends TriggeringCommit {
  /** `owner/name`. */
  readonly repository: string;
  readonly repo: RepositoryName;
  readonly runId: string;
  /** Counted from 1, over the re-runs of the run. */
  readonly attempt: number;
  /** Distinguishes the step from the others of the run, but not the legs of its matrix. */
  readonly step: string;
  /** Why GitHub gives the workflow none of the repository's secrets, where that is so. */
  readonly untrusted: "fork" | "dependabot" | undefined;
  /** The run's page at GitHub. */
  readonly url: string;
  /** Base URL of GitHub's REST API, without a slash at the end. */
  readonly apiUrl: string;
  readonly workspace: string;
}

/**
 * Combines what the runner and the event state about the run.
 * @throws ZodError for an event that GitHub does not send
 */
export function readWorkflowRun(
  context: WorkflowContext,
  environment: NodeJS.ProcessEnv,
): WorkflowRun {
  const { repo, runId, serverUrl } = context;
  const event = workflowEvent.parse(context.payload);
  const repository = `${repo.owner}/${repo.repo}`;
  // Old versions of GitHub Enterprise Server number no attempts.
  const attempt = Number.isNaN(context.runAttempt) ? 1 : context.runAttempt;
  return {
    repository,
    repo,
    runId: String(runId),
    attempt,
    step: `${context.workflow} ${context.job} ${context.action}`,
    ...findTriggeringCommit(event, {
      sha: context.sha,
      ref: context.ref,
      isProtected: environment["GITHUB_REF_PROTECTED"] === "true",
    }),
    untrusted: findUntrustedOrigin(event, context, repository),
    url: `${serverUrl}/${repository}/actions/runs/${runId}/attempts/${attempt}`,
    apiUrl: context.apiUrl.replace(/\/+$/, ""),
    workspace: environment["GITHUB_WORKSPACE"] ?? process.cwd(),
  };
}

function findUntrustedOrigin(
  { pull_request: pullRequest }: WorkflowEvent,
  { eventName, actor }: Pick<WorkflowContext, "eventName" | "actor">,
  repository: string,
): WorkflowRun["untrusted"] {
  // It runs the base branch's workflow, with its secrets.
  if (eventName === "pull_request_target") return undefined;
  if (actor === "dependabot[bot]") return "dependabot";
  return pullRequest && pullRequest.head.repo?.full_name !== repository ? "fork" : undefined;
}

/** Identifies the step, and its leg of a matrix. */
export interface StepIdentity {
  /** Name of the check run of the whole batch, where it is no dry run. */
  readonly checkName: string;
  /** Of the batches, where the workflow names none. */
  readonly suite: string;
  /** Label of the jobs of all runs of the step. */
  readonly stepLabel: Readonly<Record<string, string>>;
  /** Labels of the jobs of all attempts of the run. */
  readonly runLabels: Readonly<Record<string, string>>;
  /** Labels of the jobs of this process. */
  readonly labels: Readonly<Record<string, string>>;
}

const defaultCheckName = "Model compression";
/** What the service takes as a name, and GitHub with the words for a dry run after it. */
const maxNameBytes = 200;

/**
 * The identity, which differs between attempts of a run only in the labels of the process.
 * @param submission distinguishes steps that GitHub gives the same names: those of a workflow that
 * another one calls twice
 */
export function stepIdentity(
  run: Pick<WorkflowRun, "repository" | "runId" | "step">,
  { "check-name": given, matrix = [] }: Pick<Inputs, "check-name" | "matrix">,
  submission: string,
): StepIdentity {
  const leg = matrix.length === 0 ? "" : ` (${matrix.join(", ")})`;
  const checkName = shortenName(given ?? `${defaultCheckName}${leg}`);
  const stepLabel = { "github-step": digest([run.repository, run.step, checkName, leg]) };
  const runLabels = { "github-run": run.runId, ...stepLabel };
  return {
    checkName,
    suite: shortenName(`${run.repository}: ${checkName}`),
    stepLabel,
    runLabels,
    labels: { ...runLabels, "github-submission": submission },
  };
}

/** The name on one line. A long one ends with a digest, since others may begin like it. */
function shortenName(name: string): string {
  const line = joinLines(name).trim();
  const mark = ` ${digest(name).slice(0, 8)}`;
  return utf8ByteLength(line) <= maxNameBytes
    ? line
    : truncateToBytes(line, maxNameBytes - mark.length) + mark;
}

/** SHA-256 of a JSON value, in as many digits as fit in a label. */
export function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 40);
}
