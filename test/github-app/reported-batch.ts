import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import type { TestContext } from "node:test";
import { type Batch, batch as batchSchema } from "../../src/contract/batches/batch.ts";
import type { UnnumberedEvent } from "../../src/contract/worker-protocol/messages.ts";
import { type GitHub, startGitHub } from "../action/support/github-double.ts";
import { type TestApp, beginTestWorker } from "../server/test-app.ts";
import { until } from "../support/until.ts";

export const sha = "009b8a3a9ccbb128af87f9b1c0f4c62e8a304f6d";

export const appId = 4711;

/** A GitHub with an app that is installed in its repository, and the app's credentials. */
export async function startGitHubWithApp(t: TestContext) {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const app = {
    id: appId,
    slug: "model-optimization",
    installation: 99,
    repository: 123,
    publicKey,
  };
  const gitHub = await startGitHub(t, { app });
  const publicUrl = "https://mos.example";
  const credentials = { appId: String(appId), key: privateKey, apiUrl: gitHub.url, publicUrl };
  return { gitHub, app, credentials };
}

/** The file with which a service reports as the app. */
export function gitHubAppFileContent(
  { key, apiUrl }: Awaited<ReturnType<typeof startGitHubWithApp>>["credentials"],
  webhookSecret?: string,
): string {
  const privateKey = key.export({ type: "pkcs1", format: "pem" });
  return JSON.stringify({ appId, privateKey, webhookSecret, apiUrl });
}

/** A batch that asks for a report on the commit. */
export function reportedBatch(
  names: readonly string[],
  overrides: Readonly<Record<string, unknown>> = {},
) {
  const github = {
    repository: "acme/models",
    sha,
    checkName: "Model compression",
  };
  return {
    models: names.map((name) => ({ name, source: `https://models.example/${name}.onnx` })),
    targets: ["cpu"],
    report: { github },
    ...overrides,
  };
}

export async function submitBatch({ ask }: TestApp, body: unknown): Promise<Batch> {
  const answer = await ask("POST /v1/batches", { body });
  assert.equal(answer.status, 202, await answer.clone().text());
  return batchSchema.parse(await answer.json());
}

/** Has a job worked on to its end. */
export async function endJob(
  service: TestApp,
  id: string,
  ...events: readonly UnnumberedEvent[]
): Promise<void> {
  const worker = await beginTestWorker(service, id);
  const { cancelled } = await worker.report(
    { type: "status", status: "Sharding" },
    { type: "status", status: "Optimizing" },
    ...events,
  );
  assert.equal(cancelled, false);
}

export const completed: UnnumberedEvent = { type: "result", outcome: "Completed" };
export const failed: UnnumberedEvent = {
  type: "result",
  outcome: "Failed",
  error: { code: "model_invalid", message: "No ONNX model" },
};

/** The newest check run of the name, once it is as it should be. */
export async function untilCheckRun(gitHub: GitHub, name: string, conclusion: string | null) {
  return until(`the check run "${name}" has the conclusion ${conclusion}`, () => {
    const run = gitHub.checkRuns().findLast((one) => one.name === name);
    return run?.conclusion === conclusion && run;
  });
}
