import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { Agent } from "undici";
import { connectGitHub } from "../../src/action/connect-github.ts";
import { CheckRunWriter } from "../../src/github/check-run-writer.ts";
import type { Annotation } from "../../src/report/build-annotations.ts";
import { startGitHub } from "../action/support/github-double.ts";
import { gitHubFaults } from "../action/support/github-faults.ts";

const headSha = "009b8a3a9ccbb128af87f9b1c0f4c62e8a304f6d";
const identity = {
  name: "compression",
  externalId: "run-1",
  detailsUrl: "https://github.com/acme/models/actions/runs/1",
};
const output = { title: "1 job failed", summary: "It failed", text: "" };
const annotations = Array.from({ length: 60 }, (_, i): Annotation => {
  return {
    place: { file: "batch.yaml", line: i + 1 },
    level: "failure",
    title: `m${i} for cpu failed`,
    message: "model_invalid",
  };
});
const content = { output, conclusion: "failure" as const, annotations };
const lostAnswer = { fault: gitHubFaults.badGateway, isDone: true };

async function start(t: TestContext, { maxTries = 4 } = {}) {
  const gitHub = await startGitHub(t);
  const dispatcher = new Agent();
  t.after(async () => dispatcher.close());
  const client = connectGitHub(gitHub.token, { apiUrl: gitHub.url }, dispatcher);
  const repo = { owner: "acme", repo: "models" };
  return { gitHub, checks: new CheckRunWriter(client, { repo, headSha, maxTries }) };
}

function annotatedLines(gitHub: Awaited<ReturnType<typeof startGitHub>>, id: number): number[] {
  return gitHub.annotations(id).map(({ start_line: line }) => line);
}

const lines = annotations.map(({ place }) => place.line);

test("CheckRunWriter creates one check run with all annotations, though an answer is lost", async (t) => {
  const { gitHub, checks } = await start(t);
  gitHub.fail({ operation: "checks/create", ...lostAnswer });
  const id = await checks.create(identity, content);
  assert.deepEqual(
    gitHub.checkRuns().map((run) => [run.id, run.external_id, run.conclusion]),
    [[id, identity.externalId, "failure"]],
  );
  assert.deepEqual(annotatedLines(gitHub, id), lines);
});

test("CheckRunWriter adds every annotation once, though an answer to an update is lost", async (t) => {
  const { gitHub, checks } = await start(t);
  const id = await checks.create(identity, { output });
  gitHub.fail({ operation: "checks/update", ...lostAnswer });
  gitHub.fail({ operation: "checks/update", fault: "reset" });
  await checks.update(id, content);
  assert.deepEqual(annotatedLines(gitHub, id), lines);
  assert.equal(gitHub.checkRuns()[0]?.conclusion, "failure");
});

test("CheckRunWriter leaves a lost answer to a later try where it has no tries left", async (t) => {
  const { gitHub, checks } = await start(t, { maxTries: 1 });
  gitHub.fail({ operation: "checks/create", ...lostAnswer });
  await assert.rejects(checks.createOrUpdate(identity, { output }), { status: 502 });
  const id = await checks.createOrUpdate(identity, { output });
  gitHub.fail({ operation: "checks/update", ...lostAnswer });
  await assert.rejects(checks.update(id, content), { status: 502 });
  await checks.update(id, content);
  assert.equal(gitHub.checkRuns().length, 1);
  assert.deepEqual(annotatedLines(gitHub, id), lines);
});

test("CheckRunWriter does not repeat what GitHub refuses", async (t) => {
  const { gitHub, checks } = await start(t);
  gitHub.fail({ operation: "checks/create", fault: gitHubFaults.forbidden });
  await assert.rejects(checks.create(identity, { output }), { status: 403 });
  assert.deepEqual(gitHub.checkRuns(), []);
});
