import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { pythonInterpreter, pythonMissing } from "../support/python.ts";
import { startRunningService } from "../support/running-service.ts";

const schemathesis = join(dirname(pythonInterpreter), "schemathesis");
const config = join(import.meta.dirname, "schemathesis.toml");

interface Endpoints {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  /** Operations to try; without it all. */
  readonly operations?: readonly string[];
}

/** Runs schemathesis with all its checks, in a folder of its own, where it leaves its cache. */
async function assertNoFindings(
  t: TestContext,
  { baseUrl, token, operations = [] }: Endpoints,
): Promise<void> {
  const cwd = await mkdtemp(join(tmpdir(), "schemathesis-"));
  t.after(() => rm(cwd, { recursive: true }));
  const only = operations.flatMap((operation) => ["--include-operation-id", operation]);
  const options = [
    "-H",
    `Authorization: Bearer ${token}`,
    "--checks",
    "all",
    "--seed",
    "1",
    "-n",
    "30",
    ...only,
  ];
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
