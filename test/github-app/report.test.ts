import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { exchangedToken } from "../../src/contract/people/token.ts";
import { trustPolicy } from "../../src/contract/people/trust-policy.ts";
import { gitHubFaults } from "../action/support/github-faults.ts";
import { audience, startLocalIssuer } from "../auth/local-issuer.ts";
import { logEvent, makeTestApp, problemIn } from "../server/test-app.ts";
import {
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

test("a service without a GitHub App refuses a batch that asks for a report, and says so", async (t) => {
  const { ask } = await makeTestApp(t);
  const problem = await problemIn(await ask("POST /v1/batches", { body: reportedBatch(["one"]) }));
  assert.equal(problem.status, 422);
  assert.deepEqual(problem.errors, [
    {
      pointer: "/report/github",
      message: "Not available: this service has no GitHub App in its settings",
    },
  ]);
});

test("the service reports a batch to GitHub while it runs and at its end", async (t) => {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const service = await makeTestApp(t, { github: credentials });
  const { id, jobs } = await submitBatch(service, reportedBatch(["one", "two"]));
  const begun = await untilCheckRun(gitHub, name, null);
  assert.deepEqual(
    [begun.status, begun.head_sha, begun.output.title],
    ["in_progress", sha, "0 of 2 jobs ended"],
  );
  assert.equal(begun.details_url, `https://mos.example/batches/${id}`);
  const [one, two] = jobs;
  await endJob(service, one?.id ?? "", completed);
  const ofOne = await untilCheckRun(gitHub, `${name}: one for cpu`, "success");
  assert.equal(ofOne.external_id, one?.id);
  await endJob(service, two?.id ?? "", logEvent("Reading the model"), failed);
  const ofTwo = await untilCheckRun(gitHub, `${name}: two for cpu`, "failure");
  assert.match(ofTwo.output.text ?? "", /Reading the model/);
  const ended = await untilCheckRun(gitHub, name, "failure");
  assert.deepEqual([ended.id, ended.output.title], [begun.id, "two for cpu failed: No ONNX model"]);
  assert.equal(gitHub.checkRuns().length, 3);
});

test("writes come at most once a second", async (t) => {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const service = await makeTestApp(t, { github: credentials });
  const batch = await submitBatch(service, reportedBatch(["one", "two"]));
  for (const { id } of batch.jobs) await endJob(service, id, completed);
  await untilCheckRun(gitHub, name, "success");
  const writes = gitHub.requests.filter(({ operation }) =>
    /^checks\/(create|update)$/.test(operation),
  );
  assert.equal(writes.length, 4);
  const took = (writes.at(-1)?.at ?? 0) - (writes[0]?.at ?? 0);
  assert.ok(took > 2_500, `4 writes in ${Math.round(took)} ms`);
});

test("a report goes on after a restart of the service, and reports nothing twice", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "reports-"));
  t.after(() => rm(directory, { recursive: true }));
  const database = join(directory, "service.sqlite");
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const before = await makeTestApp(t, { github: credentials, database });
  const batch = await submitBatch(before, reportedBatch(["one"]));
  const begun = await untilCheckRun(gitHub, name, null);
  await before.stop();
  const after = await makeTestApp(t, { github: credentials, database });
  await endJob(after, batch.jobs[0]?.id ?? "", completed);
  const ended = await untilCheckRun(gitHub, name, "success");
  assert.equal(ended.id, begun.id);
  assert.equal(gitHub.checkRuns().length, 2);
});

test("a check run whose answer was lost is not made twice, and jobs do not notice when GitHub fails", async (t) => {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const service = await makeTestApp(t, { github: credentials });
  gitHub.fail({ operation: "checks/create", fault: gitHubFaults.badGateway, isDone: true });
  const batch = await submitBatch(service, reportedBatch(["one"]));
  await endJob(service, batch.jobs[0]?.id ?? "", completed);
  await untilCheckRun(gitHub, name, "success");
  assert.equal(gitHub.checkRuns().length, 2);
  assert.match(service.logged.join("\n"), /error GitHub does not take a report/);
});

test("models that failed are annotated beside their lines, once each, though an answer is lost", async (t) => {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const service = await makeTestApp(t, { github: credentials });
  const names = Array.from({ length: 51 }, (_, i) => `m${i}`);
  const places = {
    models: names.map((model, i) => ({ model, file: "batch.yaml", line: i + 2 })),
    gates: [],
  };
  const body = reportedBatch(names);
  const github = { ...body.report.github, jobChecks: "none", places };
  const { jobs } = await submitBatch(service, { ...body, report: { github } });
  const begun = await untilCheckRun(gitHub, name, null);
  gitHub.fail({ operation: "checks/update", fault: gitHubFaults.badGateway, isDone: true });
  for (const { id } of jobs) await endJob(service, id, failed);
  await untilCheckRun(gitHub, name, "failure");
  const annotations = gitHub.annotations(begun.id);
  assert.deepEqual(
    annotations.map(({ path, start_line: line, title }) => [path, line, title]),
    names.map((model, i) => ["batch.yaml", i + 2, `${model} for cpu failed`]),
  );
});

test("a place at which GitHub takes no annotation is refused, as the check would never be completed", async (t) => {
  const { credentials } = await startGitHubWithApp(t);
  const service = await makeTestApp(t, { github: credentials });
  const body = reportedBatch(["one"]);
  for (const file of ["./batch.yaml", "../batch.yaml", "/models/batch.yaml"]) {
    const places = { models: [{ model: "one", file, line: 1 }], gates: [] };
    const report = { github: { ...body.report.github, places } };
    const { errors } = await problemIn(
      await service.ask("POST /v1/batches", { body: { ...body, report } }),
    );
    assert.equal(errors?.[0]?.pointer, "/report/github/places/models/0/file");
  }
});

test("a report in a repository without the app is given up and logged", async (t) => {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const service = await makeTestApp(t, { github: credentials });
  gitHub.fail({ operation: "apps/get-repo-installation", fault: gitHubFaults.notFound });
  const batch = await submitBatch(service, reportedBatch(["one"]));
  await until("the log says so", () =>
    service.logged.some((line) => /A report is given up/.test(line)),
  );
  await endJob(service, batch.jobs[0]?.id ?? "", completed);
  assert.deepEqual([await service.records.reports.listOpen(), gitHub.checkRuns()], [[], []]);
});

test("a workflow's token asks for reports only in the workflow's own repository", async (t) => {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const issuer = await startLocalIssuer(t, `${gitHub.url}/_services/token`);
  const trust = trustPolicy.parse({
    issuers: [{ issuer: issuer.url, audience, jwksUri: issuer.jwksUri }],
    policies: [
      {
        name: "all",
        issuer: issuer.url,
        claims: { repository_owner_id: 45, repository_id: "*" },
        scopes: ["jobs:write", "reports:write"],
        report: { checkNames: "Model compression" },
      },
    ],
  });
  const { ask } = await makeTestApp(t, { trust, github: credentials });
  const submitFrom = async (repository: string) => {
    const identityToken = await issuer.sign({ claims: { repository, sha } });
    const exchanged = await ask("POST /v1/tokens/exchange", {
      token: null,
      body: { token: identityToken },
    });
    const { token } = exchangedToken.parse(await exchanged.json());
    return ask("POST /v1/batches", { token, body: reportedBatch(["one"]) });
  };
  assert.equal((await submitFrom("acme/models")).status, 202);
  const problem = await problemIn(await submitFrom("acme/other"));
  assert.deepEqual(
    [problem.status, problem.errors?.[0]?.pointer],
    [422, "/report/github/repository"],
  );
});
