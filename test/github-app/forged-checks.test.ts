import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { exchangedToken, type Scope } from "../../src/contract/people/token.ts";
import { trustPolicy } from "../../src/contract/people/trust-policy.ts";
import { audience, startLocalIssuer } from "../auth/local-issuer.ts";
import { tenantToken } from "../server/tenant-tokens.ts";
import { makeTestApp, problemIn } from "../server/test-app.ts";
import {
  completed,
  endJob,
  reportedBatch,
  sha as head,
  startGitHubWithApp,
  untilCheckRun,
} from "./reported-batch.ts";
import { batch as batchSchema } from "../../src/contract/batches/batch.ts";
import { until } from "../support/until.ts";

const name = "Model compression";
const mainCommit = "b".repeat(40);
const mergeCommit = "c".repeat(40);
/** What GitHub says of a run for the pull request that proposes `head`. */
const proposal = { event_name: "pull_request", ref: "refs/pull/7/merge", sha: mergeCommit };
const identity = { repository_owner_id: 45, repository_id: "*" };

/** A service whose trust policy says what a check of a pull request can be, and GitHub. */
async function prepare(t: TestContext) {
  const { gitHub, app, credentials } = await startGitHubWithApp(t);
  const issuer = await startLocalIssuer(t, `${gitHub.url}/_services/token`);
  const otherIssuer = await startLocalIssuer(t);
  const trust = trustPolicy.parse({
    issuers: [
      { issuer: issuer.url, audience, jwksUri: issuer.jwksUri },
      { issuer: otherIssuer.url, audience },
    ],
    policies: [
      {
        name: "uploads",
        issuer: issuer.url,
        claims: { ...identity, environment: "uploads" },
        scopes: ["jobs:write"],
      },
      {
        name: "all",
        issuer: issuer.url,
        claims: identity,
        scopes: ["jobs:read", "jobs:write", "reports:write"],
        report: { checkNames: name, gates: { maxSizeRatio: 0.5, minSqnrDb: 20 } },
      },
      {
        name: "another GitHub",
        issuer: otherIssuer.url,
        claims: identity,
        scopes: ["jobs:write", "reports:write"],
        report: { checkNames: name },
      },
    ],
  });
  gitHub.parents.set(mergeCommit, [mainCommit, head]);
  const service = await makeTestApp(t, { trust, github: credentials });
  const submit = async (
    claims: Readonly<Record<string, unknown>>,
    { report = {}, ...fields }: Readonly<Record<string, unknown>> & { report?: object } = {},
    by = issuer,
  ) => {
    const body = { token: await by.sign({ claims: { ...proposal, ...claims } }) };
    const exchanged = await service.ask("POST /v1/tokens/exchange", { token: null, body });
    const { token } = exchangedToken.parse(await exchanged.json());
    const asked = reportedBatch(["one"], fields);
    const github = { ...asked.report.github, ...report };
    return service.ask("POST /v1/batches", { token, body: { ...asked, report: { github } } });
  };
  return { gitHub, app, otherIssuer, service, submit };
}

type Forgery = Parameters<Awaited<ReturnType<typeof prepare>>["submit"]>;

/** Requests of a pull request's workflow for a check that it must not have, and where they fail. */
const forgeries: Readonly<Record<string, readonly [Forgery, string]>> = {
  "never fails": [[{}, { report: { failOn: "nothing" } }], "/report/github/failOn"],
  "ignores the gates": [[{}, { report: { failOn: "jobs" } }], "/report/github/failOn"],
  "has a looser gate": [[{}, { gates: { maxSizeRatio: 2 } }], "/gates/maxSizeRatio"],
  "has a gate that only warns": [[{}, { gates: { warnGates: ["minSqnrDb"] } }], "/gates/warnGates"],
  "has the name of another check": [
    [{}, { report: { checkName: "Tests" } }],
    "/report/github/checkName",
  ],
  "is on the base's commit": [[{}, { report: { sha: mainCommit } }], "/report/github/sha"],
  "is on another pull request's commit": [
    [{}, { report: { sha: "d".repeat(40) } }],
    "/report/github/sha",
  ],
  "is in another repository": [
    [{}, { report: { repository: "acme/other" } }],
    "/report/github/repository",
  ],
  "is on the commit of a pull request, for a push to another": [
    [{ event_name: "push", ref: "refs/heads/mine", sha: "d".repeat(40) }],
    "/report/github/sha",
  ],
  "is on the main branch, for a comment of a stranger": [
    [{ event_name: "issue_comment", ref: "refs/heads/main", sha: head }],
    "/report/github/sha",
  ],
  "is on the base, for pull_request_target": [
    [{ event_name: "pull_request_target", ref: "refs/heads/main", sha: head }],
    "/report/github/sha",
  ],
  "is on a merge that is not GitHub's": [[{ sha: "e".repeat(40) }], "/report/github/sha"],
};

for (const [what, [forgery, pointer]] of Object.entries(forgeries)) {
  test(`no check is written that ${what}`, async (t) => {
    const { gitHub, service, submit } = await prepare(t);
    const problem = await problemIn(await submit(...forgery));
    assert.equal(problem.status, 422);
    assert.deepEqual(
      problem.errors?.map((error) => error.pointer),
      [pointer],
    );
    assert.deepEqual([service.submitted, gitHub.checkRuns()], [[], []]);
  });
}

test("no check is written for a workflow of another GitHub whose repository has the same name and number", async (t) => {
  const { gitHub, service, otherIssuer, submit } = await prepare(t);
  const answer = await submit({ event_name: "push", sha: head }, {}, otherIssuer);
  const problem = await problemIn(answer);
  assert.deepEqual([problem.status, problem.errors?.[0]?.pointer], [422, "/report/github"]);
  assert.match(problem.errors?.[0]?.message ?? "", new RegExp(`is "${otherIssuer.url}"`));
  assert.deepEqual([service.submitted, gitHub.checkRuns()], [[], []]);
});

test("no check is written in a repository that has the name of a renamed one", async (t) => {
  const { gitHub, app, service, submit } = await prepare(t);
  app.repository = 124;
  const push = { event_name: "push", ref: "refs/heads/main", sha: head, repository_id: "123" };
  assert.equal((await submit(push)).status, 202);
  await until("the report is closed", async () => {
    return (await service.records.reports.listOpen()).length === 0;
  });
  assert.deepEqual(gitHub.checkRuns(), []);
  assert.match(service.logged.join("\n"), /A report is given up/);
});

test("no check is written for a token without the scope", async (t) => {
  const { gitHub, service, submit } = await prepare(t);
  const answers = [await submit({ environment: "uploads" })];
  const scopes: [Scope, ...Scope[]] = ["jobs:read", "jobs:write", "models:write"];
  const token = await service.tokenFor(...scopes);
  answers.push(await service.ask("POST /v1/batches", { token, body: reportedBatch(["one"]) }));
  for (const answer of answers) {
    const problem = await problemIn(answer);
    assert.deepEqual([problem.status, problem.code], [403, "missing_scope"]);
    assert.match(problem.detail, /"reports:write"/);
  }
  assert.deepEqual([service.submitted, gitHub.checkRuns()], [[], []]);
});

test("no check is written for an administrator of another project, whose repositories nobody knows", async (t) => {
  const { gitHub, service } = await prepare(t);
  const { token } = await tenantToken(service, { project: "other", scopes: ["admin"] });
  const body = reportedBatch(["one"]);
  const problem = await problemIn(await service.ask("POST /v1/batches", { token, body }));
  assert.deepEqual(
    problem.errors?.map((error) => error.pointer),
    ["/report/github"],
  );
  assert.deepEqual([service.submitted, gitHub.checkRuns()], [[], []]);
});

test("a dry run has a check of another name", async (t) => {
  const { gitHub, service, submit } = await prepare(t);
  const { jobs } = batchSchema.parse(await (await submit({}, { dryRun: true })).json());
  await endJob(service, jobs[0]?.id ?? "", completed);
  await untilCheckRun(gitHub, `${name} (dry run)`, "success");
  const names = gitHub.checkRuns().map((run) => run.name);
  assert.ok(!names.includes(name), names.join());
});

test("a pull request's check has the gates of the trust policy, and only links of the service", async (t) => {
  const { gitHub, service, submit } = await prepare(t);
  const serviceUrl = "https://x) **Approved** [by](https://evil.example";
  const fields = { gates: { minCosine: 0.9 }, report: { serviceUrl } };
  const answer = await submit({}, fields);
  const { id, jobs } = batchSchema.parse(await answer.json());
  const job = await service.records.jobs.find("default", jobs[0]?.id ?? "");
  const { warnGates: _, ...gates } = job?.gateLimits ?? {};
  assert.deepEqual(gates, { minCosine: 0.9, maxSizeRatio: 0.5, minSqnrDb: 20 });
  await endJob(service, jobs[0]?.id ?? "", completed);
  const run = await untilCheckRun(gitHub, name, "failure");
  assert.deepEqual([run.head_sha, run.details_url], [head, `https://mos.example/batches/${id}`]);
  assert.doesNotMatch(JSON.stringify(gitHub.requests), /evil|Approved/);
});

test("a batch is not submitted while GitHub does not say which commit it is for", async (t) => {
  const { gitHub, service, submit } = await prepare(t);
  const fault = { status: 502, headers: {}, message: "Bad gateway" };
  gitHub.fail({ operation: "git/get-commit", fault });
  const problem = await problemIn(await submit({}));
  assert.deepEqual([problem.status, service.submitted], [503, []]);
});
