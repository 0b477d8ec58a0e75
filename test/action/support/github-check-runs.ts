import type { RestEndpointMethodTypes } from "@octokit/rest";
import {
  actionsApp,
  type Call,
  type Caller,
  forbidden,
  notFound,
  type Operations,
  paged,
  refusal,
  formatTime,
} from "./github-answer.ts";
import { type Addresses, appResource, type CheckRun } from "./github-resources.ts";
import {
  type Annotation,
  type CheckRunFields,
  checkRunErrors,
  checkRunFields,
} from "./github-rules.ts";

export type ListedAnnotation =
  RestEndpointMethodTypes["checks"]["listAnnotations"]["response"]["data"][number];

interface Stored {
  run: CheckRun;
  readonly annotations: ListedAnnotation[];
}

/** The check runs of a repository, with the operations on them. */
export function createCheckRuns(addresses: Addresses) {
  const all: Stored[] = [];
  const find = ({ params }: Call) =>
    all.find(({ run }) => String(run.id) === params["check_run_id"]);

  const operations: Operations = {
    "checks/create"(call) {
      if (call.caller.isPerson === true)
        return forbidden("You must authenticate via a GitHub App.");
      const fields = checkRunFields.parse(call.body);
      const errors = checkRunErrors(fields);
      if (errors.length > 0) return refusal(errors);
      const run = newCheckRun(addresses, all.length + 1, { ...call, fields });
      const stored = { run, annotations: [] };
      change(stored, fields, call.caller);
      all.push(stored);
      return { status: 201, body: stored.run };
    },
    "checks/update"(call) {
      const stored = find(call);
      if (stored === undefined) return notFound;
      const { id } = call.caller;
      if (stored.run.app?.id !== id)
        return forbidden(
          `Invalid app_id \`${id}\` - check run can only be modified by the GitHub App that created it.`,
        );
      const fields = checkRunFields.parse(call.body);
      const errors = checkRunErrors(fields);
      if (errors.length > 0) return refusal(errors);
      change(stored, fields, call.caller);
      return { status: 200, body: stored.run };
    },
    "checks/get"(call) {
      const stored = find(call);
      return stored === undefined ? notFound : { status: 200, body: stored.run };
    },
    "checks/list-annotations"(call) {
      const stored = find(call);
      return stored === undefined ? notFound : paged(stored.annotations, call.query);
    },
    "checks/list-for-ref"({ params, query }) {
      const { check_name: name, app_id: app, status, filter = "latest" } = query;
      const found = all
        .map(({ run }) => run)
        .filter(
          (run) => run.head_sha === params["ref"] && (name === undefined || run.name === name),
        )
        .filter((run) => app === undefined || String(run.app?.id) === app)
        .filter((run) => status === undefined || run.status === status)
        .toReversed();
      const isNewest = (run: CheckRun, index: number) =>
        found.findIndex((other) => other.name === run.name && other.app?.id === run.app?.id) ===
        index;
      const chosen = filter === "latest" ? found.filter(isNewest) : found;
      const page = paged(chosen, query);
      return { ...page, body: { total_count: chosen.length, check_runs: page.body } };
    },
  };

  return {
    operations,
    list: () => all.map(({ run }) => run),
    annotations: (id: number) => all.find(({ run }) => run.id === id)?.annotations ?? [],
  };
}

interface NewCheckRun {
  readonly params: Call["params"];
  readonly fields: CheckRunFields;
  readonly caller: Caller;
}

function newCheckRun(
  addresses: Addresses,
  id: number,
  { params, fields, caller }: NewCheckRun,
): CheckRun {
  const repository = `${params["owner"]}/${params["repo"]}`;
  const url = `${addresses.api}/repos/${repository}/check-runs/${id}`;
  return {
    id,
    node_id: `CR_${id}`,
    name: "",
    head_sha: fields.head_sha ?? "",
    external_id: "",
    url,
    html_url: `${addresses.server}/${repository}/runs/${id}`,
    details_url: `${addresses.server}/apps/${caller.slug}`,
    status: "queued",
    conclusion: null,
    started_at: null,
    completed_at: null,
    output: {
      title: null,
      summary: null,
      text: null,
      annotations_count: 0,
      annotations_url: `${url}/annotations`,
    },
    check_suite: { id: 1 },
    app: appResource(addresses, caller),
    pull_requests: [],
  };
}

function change(stored: Stored, fields: CheckRunFields, caller: Caller): void {
  const { run, annotations } = stored;
  annotations.push(...(fields.output?.annotations ?? []).map(listed));
  stored.run = {
    ...run,
    ...times(run, fields),
    name: fields.name ?? run.name,
    external_id: fields.external_id ?? run.external_id,
    // For what a workflow's token makes, GitHub shows the page of the workflow's run instead.
    details_url:
      caller.id === actionsApp.id ? run.html_url : (fields.details_url ?? run.details_url),
    output: {
      title: fields.output?.title ?? run.output.title,
      summary: fields.output?.summary ?? run.output.summary,
      text: fields.output?.text ?? run.output.text,
      annotations_count: annotations.length,
      annotations_url: run.output.annotations_url,
    },
  };
}

/** A conclusion completes a check run; a status other than completed opens it again. */
function times(
  run: CheckRun,
  { status: asked, conclusion, started_at: start, completed_at: end }: CheckRunFields,
) {
  const status = conclusion === undefined ? (asked ?? run.status) : ("completed" as const);
  const isCompleted = status === "completed";
  return {
    status,
    conclusion:
      conclusion === undefined || conclusion === "stale"
        ? isCompleted
          ? run.conclusion
          : null
        : conclusion,
    started_at: start ?? run.started_at ?? (status === "queued" ? null : formatTime(new Date())),
    completed_at: isCompleted ? (end ?? run.completed_at ?? formatTime(new Date())) : null,
  };
}

function listed(annotation: Annotation): ListedAnnotation {
  const { path, start_line, end_line, annotation_level, message } = annotation;
  return {
    path,
    start_line,
    end_line,
    start_column: annotation.start_column ?? null,
    end_column: annotation.end_column ?? null,
    annotation_level,
    title: annotation.title ?? null,
    message,
    raw_details: annotation.raw_details ?? null,
    blob_href: "",
  };
}
