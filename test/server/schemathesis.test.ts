import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import test from "node:test";
import { pythonInterpreter, pythonMissing } from "../support/python.ts";
import { startRunningService } from "../support/running-service.ts";

const schemathesis = join(dirname(pythonInterpreter), "schemathesis");
const config = join(import.meta.dirname, "schemathesis.toml");

// Not with the administrator's token: the run would revoke it.
test("schemathesis finds no answer that the OpenAPI document does not describe", { skip: pythonMissing }, async (t) => {
  const { baseUrl, client } = await startRunningService(t);
  const scopes = ["jobs:read" as const, "jobs:write" as const, "models:write" as const];
  const { token } = await client.call("createToken", { body: { name: "schemathesis", scopes } });
  const args = [`${baseUrl}/openapi.json`, "-H", `Authorization: Bearer ${token}`, "--checks", "all", "--seed", "1"];
  const run = spawn(schemathesis, ["--config-file", config, "run", ...args, "-n", "30"], { cwd: import.meta.dirname });
  const [out, code] = await Promise.all([text(run.stdout), new Promise((done) => run.once("exit", done))]);
  assert.equal(code, 0, out);
});

test("schemathesis finds nothing in the administrator's endpoints", { skip: pythonMissing }, async (t) => {
  const { baseUrl, token } = await startRunningService(t);
  const args = [`${baseUrl}/openapi.json`, "-H", `Authorization: Bearer ${token}`, "--checks", "all", "--seed", "1"];
  const only = ["--include-operation-id", "listTokens", "--include-operation-id", "createToken"];
  const run = spawn(schemathesis, ["--config-file", config, "run", ...args, ...only, "-n", "30"], {
    cwd: import.meta.dirname,
  });
  const [out, code] = await Promise.all([text(run.stdout), new Promise((done) => run.once("exit", done))]);
  assert.equal(code, 0, out);
});
