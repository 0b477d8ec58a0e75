import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { createClient } from "../../src/client/create-client.ts";
import { createdToken } from "../../src/contract/people/token.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { pythonInterpreter, pythonMissing } from "../support/python.ts";
import { startRunningService } from "../support/running-service.ts";
import { relayAnswers } from "./relay-answers.ts";

const schemathesis = join(dirname(pythonInterpreter), "schemathesis");
const commonConfig = join(import.meta.dirname, "schemathesis.toml");

interface Endpoints {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  /** Operations to try; without it all. */
  readonly operations?: readonly string[];
  /** More of the configuration. */
  readonly settings?: string;
  /** By default all checks, with 20 examples of each operation, in all phases. */
  readonly checks?: readonly string[];
}

const allChecks = ["--checks", "all", "-n", "20"];

/** Runs schemathesis in a folder of its own, where it leaves its cache. */
async function assertNoFindings(
  t: TestContext,
  { baseUrl, token, operations = [], settings = "", checks = allChecks }: Endpoints,
): Promise<void> {
  const cwd = await mkdtemp(join(tmpdir(), "schemathesis-"));
  t.after(() => rm(cwd, { recursive: true }));
  const config = join(cwd, "schemathesis.toml");
  await writeFile(config, `${await readFile(commonConfig, "utf8")}\n${settings}`);
  const only = operations.flatMap((operation) => ["--include-operation-id", operation]);
  const options = ["-H", `Authorization: Bearer ${token}`, "--seed", "1", ...checks, ...only];
  const run = spawn(
    schemathesis,
    ["--config-file", config, "run", `${baseUrl}/openapi.json`, ...options],
    { cwd },
  );
  const [out, code] = await Promise.all([
    text(run.stdout),
    new Promise((done) => run.once("exit", done)),
  ]);
  assert.equal(code, 0, out);
}

// Not with the administrator's token: the run would revoke it.
test(
  "schemathesis finds no answer that the OpenAPI document does not describe",
  { skip: pythonMissing },
  async (t) => {
    const { baseUrl, client } = await startRunningService(t);
    const scopes = ["jobs:read" as const, "jobs:write" as const, "models:write" as const];
    const { token } = await client.call("createToken", { body: { name: "schemathesis", scopes } });
    await assertNoFindings(t, { baseUrl, token });
  },
);

test(
  "schemathesis finds nothing in the administrator's endpoints",
  { skip: pythonMissing },
  async (t) => {
    const { baseUrl, token } = await startRunningService(t);
    await assertNoFindings(t, { baseUrl, token, operations: ["listTokens", "createToken"] });
  },
);

/** Operations of one job, which the run of another project tries on it. */
const jobOperations = [
  "getJob",
  "cancelJob",
  "streamLogs",
  "listArtifacts",
  "getArtifact",
  "getAttestations",
];
const batchOperations = ["getBatch", "cancelBatch"];
/** By ids of its own project the run would lose its token. */
const tokenOperations = ["rotateToken", "revokeToken"];
/** Operations with bodies, of which most of the coverage phase's requests are wrong ones. */
const submissions = ["startCompression", "startQuantization", "submitBatch"];

test(
  "schemathesis finds nothing of another project, also by its ids",
  { skip: pythonMissing },
  async (t) => {
    const { baseUrl, client } = await startRunningService(t);
    const word = "ownedbyanotherproject";
    const model = { source: `https://${word}.example/a.onnx` };
    const labels = { word };
    const { id } = await client.call("startCompression", {
      body: { model, target: "cpu", labels },
    });
    const made = await client.call("submitBatch", {
      body: { models: [model], targets: ["cpu"], suite: word, labels },
    });
    await client.call("createProject", { params: { project: "vision" } });
    const own = await client.call("createToken", { body: { name: word, scopes: ["jobs:read"] } });
    const { token } = createdToken.parse(
      await client.call("createToken", {
        body: { name: "vision", scopes: ["admin"], project: "vision" },
      }),
    );
    const relayed = await relayAnswers(t, baseUrl);
    const settings = [
      nameInPath(jobOperations, id),
      nameInPath(batchOperations, made.id),
      nameInPath(tokenOperations, own.id),
      // Wrong bodies and methods are answered the same in every project: the first run looks at it.
      setFor(submissions, "phases.coverage.enabled = false"),
      "[phases.coverage]\nunexpected-methods = []",
    ];
    // The answers themselves are what the other tests check.
    const checks = ["--checks", "not_a_server_error", "--phases", "coverage,fuzzing", "-n", "10"];
    await assertNoFindings(t, { ...relayed, token, settings: settings.join("\n"), checks });
    const ids = [id, made.id, own.id, ...made.jobs.map((job) => job.id)];
    for (const { request, answer } of relayed.answers) {
      assert.doesNotMatch(answer, new RegExp(word), request);
      const leaked = ids.filter((each) => answer.includes(each) && !request.includes(each));
      assert.deepEqual(leaked, [], request);
    }
    assert.ok(relayed.answers.some(({ request }) => request.includes(id)));
    await createClient({ routes, baseUrl, token }).call("getOwnToken", {});
    const { tokens } = await client.call("listTokens", {});
    assert.ok(tokens.some((each) => each.id === own.id));
    const { status } = await client.call("getJob", { params: { id } });
    assert.notEqual(status, "Cancelled");
  },
);

function nameInPath(operations: readonly string[], id: string): string {
  return setFor(operations, `parameters = { "path.id" = "${id}" }`);
}

function setFor(operations: readonly string[], setting: string): string {
  return `[[operations]]\ninclude-operation-id = ${JSON.stringify(operations)}\n${setting}\n`;
}
