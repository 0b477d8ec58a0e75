import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { copyFile, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { realModel } from "../support/real-models.ts";
import { prepareStep } from "./prepare-step.ts";

function errorsOf(commands: readonly { readonly command: string; readonly message: string }[]): string {
  return commands.flatMap(({ command, message }) => (command === "error" ? message : [])).join("\n");
}

test("every input that is wrong is named", async (t) => {
  const { run } = await prepareStep(t);
  const { code, commands } = await run({ targets: "", timeout: "soon", "job-checks": "some" });
  assert.equal(code, 1);
  for (const name of ["targets", "timeout", "job-checks"])
    assert.match(errorsOf(commands), new RegExp(`Input "${name}" is`));
});

test("a token that is missing is told, with both ways to give one", async (t) => {
  const { run } = await prepareStep(t);
  const { code, commands } = await run({ token: "" });
  assert.equal(code, 1);
  assert.match(errorsOf(commands), /Input "token" is missing.*id-token: write/);
});

test("targets that the service does not have are told before anything is uploaded", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  const { code, commands, log } = await run({ targets: "cpu, phone, browser" });
  assert.equal(code, 1);
  assert.match(errorsOf(commands), /no target phone, browser; it has cpu, cpu-int8/);
  assert.doesNotMatch(log, /uploaded/);
  assert.deepEqual(
    gitHub.checkRuns().map(({ conclusion }) => conclusion),
    ["failure"],
  );
});

test("a service that is not there fails the check as infrastructure", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  const { code, outputs, commands } = await run({ "service-url": "http://127.0.0.1:9" });
  assert.equal(code, 1);
  assert.equal(outputs["conclusion"], "failure");
  assert.match(errorsOf(commands), /The service at http:\/\/127\.0\.0\.1:9\/v1 cannot be reached/);
  assert.match(gitHub.checkRuns()[0]?.output.title ?? "", /^Infrastructure: the service cannot be reached/);
});

test("an address that is not the service's is told", async (t) => {
  const other = createServer((_, response) => response.writeHead(404).end("<html>")).listen(0, "127.0.0.1");
  await once(other, "listening");
  t.after(() => other.close());
  const address = other.address();
  assert.ok(typeof address === "object" && address !== null);
  const { run } = await prepareStep(t);
  const { commands } = await run({ "service-url": `http://127.0.0.1:${address.port}` });
  assert.match(errorsOf(commands), /There is no model optimization service at http:/);
});

test("a token that the service does not know, or that may not enough, is told with what to do", async (t) => {
  const { service, run } = await prepareStep(t);
  const unknown = await run({ token: `mos_${"0".repeat(36)}` });
  assert.match(errorsOf(unknown.commands), /unauthorized.*is the input "token" right/s);
  const { token } = await service.client.call("createToken", { body: { name: "reader", scopes: ["jobs:read"] } });
  const narrow = await run({ token });
  assert.match(errorsOf(narrow.commands), /403.*Make a token with the scopes/s);
});

test("a batch that takes longer than allowed is cancelled and told as such", async (t) => {
  const { service, gitHub, runner, run } = await prepareStep(t);
  await copyFile(realModel("ocr-recognition"), path.join(runner.workspace, "a.onnx"));
  const { code, outputs } = await run({ timeout: "1s", recipe: "evaluation: { runs: 1000 }" });
  assert.equal(code, 1);
  assert.equal(outputs["conclusion"], "timed_out");
  assert.deepEqual(
    gitHub.checkRuns().map(({ conclusion }) => conclusion),
    ["timed_out"],
  );
  const batch = await service.client.call("getBatch", { params: { id: outputs["batch-id"] ?? "" } });
  assert.equal(batch.status, "Cancelled");
});

for (const megabytes of [1, 40]) {
  test(`a model of ${megabytes} MB that is larger than the service allows is told with the limit`, async (t) => {
    const { runner, run } = await prepareStep(t, { environment: { MOS_MAX_MODEL_BYTES: "1000" } });
    await writeFile(path.join(runner.workspace, "large.onnx"), Buffer.alloc(megabytes * 1_000_000, 1));
    const { code, commands } = await run({ models: "large.onnx" });
    assert.equal(code, 1);
    assert.match(errorsOf(commands), /large\.onnx: .* 1000 are allowed.*MOS_MAX_MODEL_BYTES/s);
  });
}

test("a step that leaves the check runs to the service is told where the service cannot write them", async (t) => {
  const { run } = await prepareStep(t);
  const { code, commands } = await run({ wait: "false" });
  assert.equal(code, 1);
  assert.match(errorsOf(commands), /report.*GitHub App/);
});
