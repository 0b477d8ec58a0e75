import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import test, { type TestContext } from "node:test";
import { auditPage } from "../../src/contract/people/audit.ts";
import { batch as batchSchema } from "../../src/contract/batches/batch.ts";
import { reportRules } from "../../src/contract/batches/report-rules.ts";
import type { UnnumberedEvent } from "../../src/contract/worker-protocol/messages.ts";
import type { Workflow } from "../../src/contract/people/principal.ts";
import { defaultProject } from "../../src/contract/project.ts";
import type { GitHub } from "../action/support/github-double.ts";
import { pushed, tenantToken } from "../server/tenant-tokens.ts";
import { makeTestApp, problemIn, type TestApp } from "../server/test-app.ts";
import {
  appId,
  completed,
  endJob,
  failed,
  reportedBatch,
  sha,
  startGitHubWithApp,
  submitBatch,
  untilCheckRun,
} from "./reported-batch.ts";
import { until } from "../support/until.ts";

const name = "Model compression";
const webhookSecret = "s3cret";
const main = "a".repeat(40);

async function start(t: TestContext) {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const service = await makeTestApp(t, { github: { ...credentials, webhookSecret } });
  return { gitHub, service };
}

interface Delivery {
  readonly id?: string;
  readonly secret?: string;
  readonly event?: string;
}

/** Delivers an event to the service, as GitHub does. */
async function deliver(
  service: TestApp,
  payload: unknown,
  { id, secret = webhookSecret, event }: Delivery = {},
) {
  const body = JSON.stringify(payload);
  const headers = {
    "x-github-event": event ?? "check_run",
    "x-github-delivery": id ?? randomUUID(),
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  };
  return service.ask("POST /github/webhook", { token: null, body, headers });
}

/** Somebody presses a button of a check run. */
function pressed(checkRun: number, identifier: string, app = appId) {
  return {
    action: "requested_action",
    requested_action: { identifier },
    check_run: { id: checkRun, app: { id: app } },
    sender: { login: "octocat" },
  };
}

/** Actions, subjects and names of the audit, newest first. */
async function readAudit({ ask }: TestApp) {
  const { entries } = auditPage.parse(await (await ask("GET /v1/audit")).json());
  return entries.map(({ action, subject, tokenName }) => [action, subject, tokenName]);
}

async function jobCount({ records }: TestApp): Promise<number> {
  return [...(await records.metrics.countByStatus()).values()].reduce((sum, jobs) => sum + jobs, 0);
}

test("Re-run submits the jobs that failed, once for each signed body, and reports them in a new check run", async (t) => {
  const { gitHub, service } = await start(t);
  const { jobs } = await submitBatch(
    service,
    reportedBatch(["one", "two", "three"], { targets: ["cpu", "cpu-int8"] }),
  );
  // The first model fails only for the first target, the others for both: no one batch holds these pairs.
  for (const [i, { id }] of jobs.entries()) await endJob(service, id, i === 1 ? completed : failed);
  const ended = await untilCheckRun(gitHub, name, "failure");
  assert.deepEqual(
    gitHub.requests.flatMap(({ body }) => actionsIn(body)),
    ["rerun"],
  );
  const id = randomUUID();
  assert.equal((await deliver(service, pressed(ended.id, "rerun"), { id })).status, 204);
  assert.equal((await deliver(service, pressed(ended.id, "rerun"), { id })).status, 204);
  assert.equal((await deliver(service, pressed(ended.id, "rerun"))).status, 204);
  assert.equal(await jobCount(service), 6 + 5);
  const [[action, , by] = []] = await readAudit(service);
  assert.deepEqual([action, by], ["rerunJobs", "octocat on GitHub"]);
  assert.equal(service.logged.filter((line) => line.includes("submitted again")).length, 1);
  const begun = await untilCheckRun(gitHub, name, null);
  assert.equal(begun.output.title, "1 of 6 jobs ended");
  const [report] = await service.records.reports.listOpen();
  assert.equal(report?.jobIds[1], jobs[1]?.id);
  for (const jobId of report?.jobIds ?? [])
    if (jobId !== jobs[1]?.id) await endJob(service, jobId, completed);
  assert.deepEqual(
    service.submitted.toSorted(),
    [...jobs.map((job) => job.id), ...repeated(report, jobs)].toSorted(),
  );
  const passed = await untilCheckRun(gitHub, name, "success");
  assert.deepEqual([passed.id, passed.output.title], [begun.id, "6 jobs passed"]);
  assert.equal(gitHub.checkRuns().filter((run) => run.name === name).length, 2);
});

test("Re-run of a job's own check run submits that job, once", async (t) => {
  const { gitHub, service } = await start(t);
  const { jobs } = await submitBatch(service, reportedBatch(["one", "two"]));
  for (const job of jobs) await endJob(service, job.id, failed);
  await untilCheckRun(gitHub, name, "failure");
  const { id, external_id } = await untilCheckRun(gitHub, `${name}: one for cpu`, "failure");
  const check_run = { id, external_id, app: { id: appId } };
  for (const login of ["octocat", "hubot"]) {
    await deliver(service, { action: "rerequested", check_run, sender: { login } });
  }
  assert.equal(await jobCount(service), 2 + 1);
  const [report] = await service.records.reports.listOpen();
  assert.equal(report?.jobIds[1], jobs[1]?.id);
  for (const again of repeated(report, jobs)) await endJob(service, again, completed);
  await untilCheckRun(gitHub, `${name}: one for cpu`, "success");
});

test("a job's re-run while its batch works goes on in the batch's check run", async (t) => {
  const { gitHub, service } = await start(t);
  const { jobs } = await submitBatch(service, reportedBatch(["one", "two"]));
  const [one, two] = jobs;
  await endJob(service, one?.id ?? "", failed);
  const { id, external_id } = await untilCheckRun(gitHub, `${name}: one for cpu`, "failure");
  await until("the service knows that check run", () =>
    service.records.reports.findByCheckedJob(external_id ?? ""),
  );
  const check_run = { id, external_id, app: { id: appId } };
  await deliver(service, { action: "rerequested", check_run, sender: { login: "octocat" } });
  await endJob(service, two?.id ?? "", completed);
  const [report] = await service.records.reports.listOpen();
  for (const again of repeated(report, jobs)) await endJob(service, again, completed);
  await untilCheckRun(gitHub, name, "success");
  const unfinished = gitHub.checkRuns().filter(({ status }) => status !== "completed");
  assert.deepEqual(unfinished, []);
});

test("Re-run all checks submits what failed in the newest batch of each check of the commit, once", async (t) => {
  const { service } = await start(t);
  const batchOf = (fields: Record<string, string>, models = ["one"]) => {
    const { report, ...request } = reportedBatch(models);
    return { ...request, report: { github: { ...report.github, ...fields } } };
  };
  const superseded = await submitBatch(service, batchOf({}));
  const newest = await submitBatch(service, batchOf({}, ["one", "two"]));
  const other = await submitBatch(service, batchOf({ checkName: "Lint" }));
  const elsewhere = await submitBatch(service, batchOf({ repository: "fork/models" }));
  const later = await submitBatch(service, batchOf({ sha: main }));
  const [passed, ...failing] = [newest, superseded, other, elsewhere, later].flatMap(
    ({ jobs }) => jobs,
  );
  await endJob(service, passed?.id ?? "", completed);
  for (const { id } of failing) await endJob(service, id, failed);
  const suite = { head_sha: sha, app: { id: appId } };
  const event = {
    action: "rerequested",
    check_suite: suite,
    repository: { id: 123, full_name: "Acme/models" },
    sender: { login: "octocat" },
  };
  const ignored = [
    { ...event, action: "requested" },
    { ...event, check_suite: { ...suite, app: null } },
    { ...event, check_suite: { ...suite, app: { id: appId + 1 } } },
  ];
  for (const one of ignored) await deliver(service, one, { event: "check_suite" });
  assert.equal(await jobCount(service), 6);
  for (const login of ["octocat", "hubot"]) {
    const answer = await deliver(
      service,
      { ...event, sender: { login } },
      { event: "check_suite" },
    );
    assert.equal(answer.status, 204);
  }
  assert.equal(await jobCount(service), 6 + 2);
  const { reports } = service.records;
  const former = [newest, other].map(({ jobs }) => jobs.at(-1)?.id);
  const present = await Promise.all([newest, other].map(({ id }) => reports.find(id)));
  for (const [i, report] of present.entries()) {
    assert.notEqual(report?.jobIds.at(-1), former[i]);
  }
});

test("a batch's retry over REST begins a new check run of its report", async (t) => {
  const { gitHub, service } = await start(t);
  const { id, jobs } = await submitBatch(service, reportedBatch(["one", "two"]));
  for (const [i, job] of jobs.entries())
    await endJob(service, job.id, i === 0 ? completed : failed);
  const ended = await untilCheckRun(gitHub, name, "failure");
  assert.equal((await service.ask(`POST /v1/batches/${id}/retry`)).status, 202);
  const begun = await untilCheckRun(gitHub, name, null);
  assert.notEqual(begun.id, ended.id);
  assert.equal(begun.output.title, "1 of 2 jobs ended");
  const [report] = await service.records.reports.listOpen();
  for (const again of repeated(report, jobs)) await endJob(service, again, completed);
  await untilCheckRun(gitHub, name, "success");
});

test("a workflow's retry leaves a check run alone that it could not ask for now", async (t) => {
  const { gitHub, service } = await start(t);
  const body = reportedBatch(["one"]);
  const { repository } = body.report.github;
  const rules = reportRules.parse({ checkNames: [name] });
  const repositoryId = `${gitHub.url}/_services/token#123`;
  const workflow = { ...pushed, repositoryId, repository, commit: sha, report: rules };
  const { token } = await tenantToken(service, { workflow });
  const answer = await service.ask("POST /v1/batches", { token, body });
  const { id, jobs } = batchSchema.parse(await answer.json());
  await endJob(service, jobs[0]?.id ?? "", failed);
  const refused = [
    ["/report/github/checkName", { ...workflow, report: { ...rules, checkNames: ["Lint"] } }],
    ["/report/github/sha", { ...workflow, commit: main }],
  ] satisfies [string, Workflow][];
  for (const [pointer, later] of refused) {
    const caller = await tenantToken(service, { workflow: later });
    const retried = await service.ask(`POST /v1/batches/${id}/retry`, { token: caller.token });
    const { errors } = await problemIn(retried);
    assert.deepEqual(
      errors?.map((error) => error.pointer),
      [pointer],
    );
  }
  const same = await service.ask(`POST /v1/batches/${id}/retry`, { token });
  assert.equal(same.status, 202);
});

function repeated(
  report: { jobIds: readonly string[] } | undefined,
  jobs: readonly { id: string }[],
): string[] {
  return (report?.jobIds ?? []).filter((id) => jobs.every((job) => job.id !== id));
}

function actionsIn(body: unknown): string[] {
  if (
    typeof body !== "object" ||
    body === null ||
    !("actions" in body) ||
    !Array.isArray(body.actions)
  )
    return [];
  return body.actions.map(({ identifier }: { identifier: string }) => identifier);
}

const measured: UnnumberedEvent = {
  type: "telemetry",
  telemetry: { size: { originalBytes: 100, resultBytes: 60, ratio: 0.6, predicted: false } },
};

test("Accept as baseline makes the results what later ones are compared with, and the check run pass", async (t) => {
  const { gitHub, service } = await start(t);
  const revision = { sha, base: { branch: "main", sha: main } };
  const asked = reportedBatch(["one"], { suite: "models", revision, gates: { maxSizeRatio: 0.5 } });
  const places = { models: [], gates: [{ gate: "maxSizeRatio", file: "batch.yaml", line: 9 }] };
  const body = { ...asked, report: { github: { ...asked.report.github, places } } };
  const { id, jobs } = await submitBatch(service, body);
  await endJob(service, jobs[0]?.id ?? "", measured, completed);
  const ended = await untilCheckRun(gitHub, name, "failure");
  await deliver(service, pressed(ended.id, "accept-baseline"));
  const accepted = await untilCheckRun(gitHub, name, "neutral");
  assert.equal(accepted.id, ended.id);
  assert.equal(gitHub.annotations(ended.id).length, 1);
  const later = await submitBatch(service, body);
  const compared = await service.records.jobs.find(defaultProject, later.jobs[0]?.id ?? "");
  assert.deepEqual([compared?.baseline?.jobId, compared?.baseline?.by], [jobs[0]?.id, "baseSha"]);
  assert.match(service.logged.join("\n"), /made the baseline.*"by":"octocat"/);
  assert.deepEqual((await readAudit(service))[1], ["acceptBaselines", id, "octocat on GitHub"]);
});

test("Accept as baseline is not a button for a token without the scope, and does nothing to a foreign suite", async (t) => {
  const { gitHub, service } = await start(t);
  const revision = { sha, base: { branch: "main", sha: main } };
  const fields = { suite: "theirs", revision, gates: { maxSizeRatio: 0.5 } };
  const theirs = await tenantToken(service, { workflow: { ...pushed, repositoryId: "999" } });
  const { report: _, ...recorded } = reportedBatch(["one"], {
    suite: "theirs",
    revision: { sha: pushed.commit, branch: "main", recordBaseline: true },
  });
  const first = await service.ask("POST /v1/batches", { token: theirs.token, body: recorded });
  const [original] = batchSchema.parse(await first.json()).jobs;
  await endJob(service, original?.id ?? "", completed);
  for (const token of [
    await service.tokenFor("jobs:write", "reports:write"),
    await service.tokenFor("jobs:write", "reports:write", "baselines:write"),
  ]) {
    const answer = await service.ask("POST /v1/batches", {
      token,
      body: reportedBatch(["one"], fields),
    });
    const { id, jobs } = batchSchema.parse(await answer.json());
    await endJob(service, jobs[0]?.id ?? "", measured, completed);
    const ended = await untilCheckRunOf(gitHub, `${id}/1`);
    await deliver(service, pressed(ended.id, "accept-baseline"));
  }
  const later = await submitBatch(service, reportedBatch(["one"], fields));
  const compared = await service.records.jobs.find(defaultProject, later.jobs[0]?.id ?? "");
  assert.equal(compared?.baseline?.jobId, original?.id);
  const buttons = gitHub.requests.map(({ body }) => actionsIn(body).join());
  assert.deepEqual(
    buttons.filter((shown) => shown !== "" && shown !== "rerun"),
    ["rerun,accept-baseline"],
  );
});

async function untilCheckRunOf(gitHub: GitHub, externalId: string) {
  return until(`the check run of ${externalId} is completed`, () => {
    const run = gitHub.checkRuns().find((one) => one.external_id === externalId);
    return run?.conclusion ? run : undefined;
  });
}

test("a signed event counts once, whatever its delivery is called", async (t) => {
  const { gitHub, service } = await start(t);
  const { jobs } = await submitBatch(service, reportedBatch(["one"]));
  await endJob(service, jobs[0]?.id ?? "", failed);
  const { id } = await untilCheckRun(gitHub, name, "failure");
  for (let i = 0; i < 3; i++) await deliver(service, pressed(id, "rerun"));
  assert.equal(await jobCount(service), 2);
  const pattern = /Jobs are submitted again/;
  assert.equal(service.logged.filter((line) => pattern.test(line)).length, 1);
});

test("events that GitHub did not sign are refused, and others do nothing", async (t) => {
  const { gitHub, service } = await start(t);
  const { jobs } = await submitBatch(service, reportedBatch(["one"]));
  await endJob(service, jobs[0]?.id ?? "", failed);
  const { id } = await untilCheckRun(gitHub, name, "failure");
  const forged = await problemIn(
    await deliver(service, pressed(id, "rerun"), { secret: "guessed" }),
  );
  assert.equal(forged.status, 401);
  const unsigned = await service.ask("POST /github/webhook", {
    token: null,
    body: pressed(id, "rerun"),
  });
  assert.equal(unsigned.status, 401);
  assert.equal((await deliver(service, { action: "requested_action" })).status, 400);
  const ignored = [
    deliver(service, { zen: "Speak like a human" }, { event: "ping" }),
    deliver(service, pressed(id, "rerun", appId + 1)),
    deliver(service, pressed(id + 1, "rerun")),
    deliver(service, pressed(id, "unknown")),
    deliver(service, { ...pressed(id, "rerun"), action: "completed" }),
  ];
  assert.deepEqual(
    (await Promise.all(ignored)).map(({ status }) => status),
    ignored.map(() => 204),
  );
  assert.equal(await jobCount(service), 1);
});

test("a service without the webhook's secret takes no events and shows no buttons", async (t) => {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const service = await makeTestApp(t, { github: credentials });
  assert.equal((await deliver(service, pressed(1, "rerun"))).status, 404);
  const { jobs } = await submitBatch(service, reportedBatch(["one"]));
  await endJob(service, jobs[0]?.id ?? "", failed);
  await untilCheckRun(gitHub, name, "failure");
  assert.deepEqual(
    gitHub.requests.flatMap(({ body }) => actionsIn(body)),
    [],
  );
});
