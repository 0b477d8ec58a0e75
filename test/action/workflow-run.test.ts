import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { context } from "@actions/github";
import {
  readWorkflowRun,
  stepIdentity,
  type WorkflowContext,
  type WorkflowRun,
} from "../../src/action/workflow-run.ts";
import { commits, type WorkflowEvent, workflowEvents } from "./support/workflow-event.ts";

/** The class of `context`, which the package does not export. It reads the process' environment. */
const Context = context.constructor as new () => WorkflowContext;

async function readRun(
  t: TestContext,
  { environment, payload }: WorkflowEvent,
  extra: Record<string, string> = {},
) {
  const folder = await mkdtemp(path.join(tmpdir(), "event-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "event.json");
  await writeFile(file, JSON.stringify(payload));
  const before = { ...process.env };
  Object.assign(process.env, {
    GITHUB_REPOSITORY: "acme/models",
    GITHUB_EVENT_PATH: file,
    ...environment,
    ...extra,
  });
  try {
    return readWorkflowRun(new Context(), process.env);
  } finally {
    process.env = before;
  }
}

const { base, head } = commits;
const proposal = {
  headSha: head,
  base: { branch: "main", sha: base },
  branch: undefined,
  isTrusted: false,
};
const onMain = {
  headSha: head,
  branch: "main",
  isTrusted: true,
  pullRequest: undefined,
  untrusted: undefined,
};

const cases: Record<keyof typeof workflowEvents, Partial<WorkflowRun>> = {
  push: { ...onMain, base: { branch: "main", sha: base } },
  pullRequest: { ...proposal, pullRequest: 7, untrusted: undefined },
  pullRequestOfFork: { ...proposal, pullRequest: 7, untrusted: "fork" },
  pullRequestOfDependabot: { ...proposal, pullRequest: 7, untrusted: "dependabot" },
  pullRequestTarget: { ...proposal, pullRequest: 7, untrusted: undefined },
  mergeGroup: { ...proposal, pullRequest: undefined, untrusted: undefined },
  workflowRun: { ...proposal, pullRequest: 7, untrusted: undefined },
  issueComment: { ...onMain, isTrusted: false, base: { branch: "main" } },
  schedule: { ...onMain, base: { branch: "main" } },
  workflowDispatch: { ...onMain, base: { branch: "main" } },
};

for (const [name, wanted] of Object.entries(cases)) {
  test(`readWorkflowRun() finds the commit, and what it is compared with, of ${name}`, async (t) => {
    const run = await readRun(t, workflowEvents[name as keyof typeof workflowEvents]);
    assert.deepEqual(
      Object.fromEntries(Object.keys(wanted).map((key) => [key, run[key as keyof WorkflowRun]])),
      wanted,
    );
  });
}

test("a branch that is neither the default one nor protected is compared with the default one", async (t) => {
  const topic = { GITHUB_REF: "refs/heads/topic" };
  const { base: comparedWith, isTrusted, branch } = await readRun(t, workflowEvents.push, topic);
  assert.deepEqual(
    { comparedWith, isTrusted, branch },
    { comparedWith: { branch: "main" }, isTrusted: false, branch: "topic" },
  );
  const release = { GITHUB_REF: "refs/heads/release/1.x", GITHUB_REF_PROTECTED: "true" };
  const ofRelease = await readRun(t, workflowEvents.push, release);
  assert.deepEqual(ofRelease.base, { branch: "release/1.x", sha: base });
  assert.equal(ofRelease.isTrusted, true);
});

test("a workflow of a fork takes no pull request to another repository for one of its own", async (t) => {
  const { environment, payload } = workflowEvents.workflowRun;
  const ofFork = { ...(payload as object), repository: { id: 2, default_branch: "main" } };
  const {
    headSha,
    pullRequest,
    base: compared,
  } = await readRun(t, { environment, payload: ofFork });
  assert.deepEqual([headSha, pullRequest, compared], [head, undefined, { branch: "main" }]);
});

test("an event with null for what it lacks runs for the commit of its branch", async (t) => {
  const { environment } = workflowEvents.push;
  const payload = { repository: { default_branch: "main" }, workflow_run: null, before: null };
  const { headSha, base: comparedWith } = await readRun(t, { environment, payload });
  assert.deepEqual([headSha, comparedWith], [head, { branch: "main" }]);
});

test("the first push of a branch has no commit before it", async (t) => {
  const { environment } = workflowEvents.push;
  const payload = { repository: { default_branch: "main" }, before: "0".repeat(40) };
  assert.deepEqual((await readRun(t, { environment, payload })).base, { branch: "main" });
});

test("however long the values of a matrix are, each leg has names of its own on a short line", () => {
  const run = { repository: `acme/${"m".repeat(100)}`, runId: "1", step: "compress" };
  const recipe = `scheme: int8-weight\nexclude:\n${"  - größer/*\n".repeat(40)}`;
  const legs = ["cpu", "cpu-int8"].map((target) =>
    stepIdentity(run, { matrix: [recipe, target] }, ""),
  );
  for (const name of legs.flatMap(({ checkName, suite }) => [checkName, suite])) {
    assert.ok(Buffer.byteLength(name) <= 200, name);
    assert.match(name, /: int8-weight exclude: - größer|: Model compression \(scheme/);
  }
  assert.equal(new Set(legs.map(({ checkName }) => checkName)).size, 2);
  assert.equal(new Set(legs.map(({ suite }) => suite)).size, 2);
});
