import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import type { Job } from "../../src/contract/jobs/job.ts";
import { isSameModel, modelDiff } from "../../src/contract/jobs/model-diff.ts";
import { modelDiffSections } from "../../src/report/model-diff-section.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";
import { floatInitializer, node, tensorInfo, writeTinyModel } from "../support/tiny-model.ts";

interface Commit {
  readonly sha: string;
  /** How much of another weight is added to the model's. */
  readonly trained?: number;
  readonly extra?: boolean;
}

async function uploadModel(
  t: TestContext,
  { client }: RunningService,
  { trained = 0, extra = false }: Commit,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "commit-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "model.onnx");
  const content = (i: number) => Math.sin(i * 12.9898) + trained * Math.cos(i * 78.233);
  await writeTinyModel(file, {
    input: [tensorInfo("x", [1, 64])],
    output: [tensorInfo("y", [1, 64])],
    initializer: [floatInitializer("w", [64, 64], content)],
    node: [
      { ...node("MatMul", ["x", "w"], ["a"]), name: "product" },
      { ...node("Relu", ["a"], [extra ? "b" : "y"]), name: "act" },
      ...(extra ? [{ ...node("Tanh", ["b"], ["y"]), name: "extra" }] : []),
    ],
  });
  return (await client.uploadModel(file)).source;
}

/** Compresses the model of a commit, which later ones are compared with. */
async function runCommit(t: TestContext, service: RunningService, commit: Commit): Promise<Job> {
  const { jobs } = await service.client.call("submitBatch", {
    body: {
      suite: "models",
      models: [{ name: "net", source: await uploadModel(t, service, commit) }],
      targets: ["cpu"],
      recipe: { evaluation: { level: "none" } },
      revision: {
        sha: commit.sha.repeat(40),
        branch: "main",
        base: { branch: "main" },
        recordBaseline: true,
      },
    },
  });
  const params = { id: jobs[0]?.id ?? "" };
  return service.client.call("getJob", { params, headers: { prefer: "wait=60" } });
}

test("a job says how its model differs from that of the commit before", async (t) => {
  const service = await startRunningService(t);
  const first = await runCommit(t, service, { sha: "a" });
  assert.equal(first.telemetry.modelDiff, undefined);
  assert.ok(first.artifacts.some(({ name }) => name === "description.json"));

  const same = await runCommit(t, service, { sha: "b" });
  assert.ok(same.telemetry.modelDiff && isSameModel(same.telemetry.modelDiff));
  assert.equal(modelDiffSections(same)[0]?.head, "The same model as the model of `main`.");

  const changed = await runCommit(t, service, { sha: "c", trained: 0.05, extra: true });
  const params = { id: changed.id, name: "diff.json" };
  const answer = await fetch(`${service.baseUrl}/jobs/${params.id}/artifacts/${params.name}`, {
    headers: { authorization: `Bearer ${service.token}` },
  });
  const diff = modelDiff.parse(await answer.json());
  assert.deepEqual(diff.nodes, { added: 1, removed: 0, changed: 0, renamed: 0, same: 2 });
  assert.deepEqual(diff.weights, { added: 0, removed: 0, changed: 1, renamed: 0, same: 0 });
  const distance = diff.weightChanges[0]?.distance ?? 0;
  assert.ok(distance > 0.03 && distance < 0.08, String(distance));
  const [section] = modelDiffSections(changed);
  const title =
    /^<summary>Against the model of <code>main<\/code>: 1 node added, 1 weight changed by up to \d\.\d %<\/summary>$/m;
  assert.match(section?.head ?? "", title);
  assert.match(section?.head ?? "", /^ {2}n1 --> n0$/m);
});
