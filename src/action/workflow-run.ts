import { readFile } from "node:fs/promises";
import { z } from "zod";

/** Where and why the step runs. */
export interface WorkflowRun {
  /** `owner/name`. */
  readonly repository: string;
  readonly eventName: string;
  readonly runId: string;
  /** Rises by one with each repetition of the run, from 1. */
  readonly attempt: number;
  /** What tells the step from all others of the run, but for its leg of the matrix. */
  readonly step: string;
  /** The commit that check runs belong to: of a pull request its own last one, not the merge that was checked out. */
  readonly headSha: string;
  readonly pullRequest: number | undefined;
  /** Why the workflow gets no secrets and no OIDC token, where that is so. */
  readonly untrusted: "fork" | "dependabot" | undefined;
  /** Where the run can be read. */
  readonly url: string;
  /** Of GitHub's REST interface, without a slash at the end. */
  readonly apiUrl: string;
  readonly workspace: string;
}

const repository = z.object({ full_name: z.string() });
const pullRequest = z.object({
  number: z.int(),
  head: z.object({ sha: z.string(), repo: repository.nullish() }),
});

/** The part of events that matters, for all that start workflows. */
const event = z.object({
  pull_request: pullRequest.optional(),
  merge_group: z.object({ head_sha: z.string() }).optional(),
  workflow_run: z
    .object({ head_sha: z.string(), pull_requests: z.array(z.object({ number: z.int() })).default([]) })
    .optional(),
});
type Event = z.infer<typeof event>;

/** What the runner and the event say about the run. */
export async function readWorkflowRun(environment: NodeJS.ProcessEnv): Promise<WorkflowRun> {
  const variable = (name: string) => environment[`GITHUB_${name}`] ?? "";
  const payload = await readEvent(variable("EVENT_PATH"));
  const [eventName, name] = [variable("EVENT_NAME"), variable("REPOSITORY")];
  const attempt = Number(variable("RUN_ATTEMPT")) || 1;
  const server = variable("SERVER_URL") || "https://github.com";
  return {
    repository: name,
    eventName,
    runId: variable("RUN_ID"),
    attempt,
    step: `${variable("WORKFLOW")} ${variable("JOB")} ${variable("ACTION")}`,
    headSha: headShaOf(payload) ?? variable("SHA"),
    pullRequest: payload.pull_request?.number ?? payload.workflow_run?.pull_requests[0]?.number,
    untrusted: untrustedBy(payload, { eventName, name, actor: variable("ACTOR") }),
    url: `${server}/${name}/actions/runs/${variable("RUN_ID")}/attempts/${attempt}`,
    apiUrl: (variable("API_URL") || "https://api.github.com").replace(/\/+$/, ""),
    workspace: variable("WORKSPACE") || process.cwd(),
  };
}

async function readEvent(file: string): Promise<Event> {
  if (file === "") return {};
  return event.parse(JSON.parse(await readFile(file, "utf8")));
}

function headShaOf({ pull_request, merge_group, workflow_run }: Event): string | undefined {
  return pull_request?.head.sha ?? merge_group?.head_sha ?? workflow_run?.head_sha;
}

function untrustedBy(
  { pull_request }: Event,
  { eventName, name, actor }: { eventName: string; name: string; actor: string },
): WorkflowRun["untrusted"] {
  // `pull_request_target` runs the base branch's workflow, with its secrets.
  if (eventName === "pull_request_target") return undefined;
  if (actor === "dependabot[bot]") return "dependabot";
  const isFork = pull_request && pull_request.head.repo?.full_name !== name;
  return isFork ? "fork" : undefined;
}
