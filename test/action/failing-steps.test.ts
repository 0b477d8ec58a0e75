import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import { copyFile, readdir, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { findFreePort } from "../support/find-free-port.ts";
import { realModel } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";
import { until } from "../support/until.ts";
import { prepareStep } from "./prepare-step.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { startServiceRelay } from "./support/service-relay.ts";

function errorMessages(
  commands: readonly { readonly command: string; readonly message: string }[],
): string {
  return commands
    .flatMap(({ command, message }) => (command === "error" ? message : []))
    .join("\n");
}

test("every input that is wrong is named", async (t) => {
  const { run } = await prepareStep(t);
  const { code, commands } = await run({ targets: "", timeout: "soon", "job-checks": "some" });
  assert.equal(code, 1);
  for (const name of ["targets", "timeout", "job-checks"])
    assert.match(errorMessages(commands), new RegExp(`Input "${name}" is`));
});

test("a token that is missing is reported, with both ways to give one", async (t) => {
  const { run } = await prepareStep(t);
  const { code, commands } = await run({ token: "" });
  assert.equal(code, 1);
  assert.match(errorMessages(commands), /Input "token" is missing.*id-token: write/);
});

test("targets that the service does not have are reported before anything is uploaded", async (t) => {
  const { gitHub, run } = await prepareStep(t);
  const { code, commands, log } = await run({ targets: "cpu, phone, browser" });
  assert.equal(code, 1);
  assert.match(errorMessages(commands), /no target phone, browser; it has cpu, cpu-int8/);
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
  assert.match(errorMessages(commands), /The service at http:\/\/127\.0\.0\.1:9 cannot be reached/);
  assert.match(
    gitHub.checkRuns()[0]?.output.title ?? "",
    /^Infrastructure: the service cannot be reached/,
  );
});

test("an address that is not the service's is reported", async (t) => {
  const { run } = await prepareStep(t);
  const report = async (status: number, headers: Record<string, string> = {}) => {
    const page = createServer((_, response) => response.writeHead(status, headers).end("<html>"));
    const { commands } = await run({ "service-url": await listenLocally(t, page) });
    return errorMessages(commands);
  };
  const nothing = /There is no model optimization service at http:\S+: is the input "service-url"/;
  assert.match(await report(404), nothing);
  assert.match(await report(200), nothing);
  const login = "https://login.example.com/?to=mos";
  assert.match(
    await report(302, { location: login }),
    /:\d+ leads to https:\/\/login\.example\.com\/\?to=mos: is the input "service-url" right\?/,
  );
});

test("a token that the service does not know, or that may not enough, is reported with what to do", async (t) => {
  const { service, run } = await prepareStep(t);
  const unknown = await run({ token: `mos_${"0".repeat(36)}` });
  assert.match(errorMessages(unknown.commands), /unauthorized.*is the input "token" right/s);
  const { token } = await service.client.call("createToken", {
    body: { name: "reader", scopes: ["jobs:read"] },
  });
  const narrow = await run({ token });
  assert.match(errorMessages(narrow.commands), /403.*Make a token with the scopes/s);
});

test("a batch that takes longer than allowed is cancelled and reported as such", async (t) => {
  const { service, gitHub, runner, run } = await prepareStep(t);
  const file = path.join(runner.workspace, "a.onnx");
  await copyFile(realModel("ocr-recognition"), file);
  // The time is the batch's then, and not an upload's.
  await service.client.uploadModel(file);
  const recipe = "evaluation: { samples: 1024 }";
  const { code, outputs } = await run({ timeout: "5s", recipe });
  assert.equal(code, 1);
  assert.equal(outputs["conclusion"], "timed_out");
  assert.deepEqual(
    gitHub.checkRuns().map(({ conclusion }) => conclusion),
    ["timed_out"],
  );
  const params = { id: outputs["batch-id"] ?? "" };
  const { jobs } = await service.client.call("getBatch", { params });
  for (const { id } of jobs) for await (const _ of service.client.followLogs(id)) continue;
  assert.equal((await service.client.call("getBatch", { params })).status, "Cancelled");
});

for (const megabytes of [1, 40]) {
  test(`a model of ${megabytes} MB that is larger than the service allows is reported with the limit`, async (t) => {
    const { runner, run } = await prepareStep(t, { environment: { MOS_MAX_MODEL_BYTES: "1000" } });
    await writeFile(
      path.join(runner.workspace, "large.onnx"),
      Buffer.alloc(megabytes * 1_000_000, 1),
    );
    const { code, commands } = await run({ models: "large.onnx" });
    assert.equal(code, 1);
    assert.match(errorMessages(commands), /large\.onnx: .* 1000 are allowed.*MOS_MAX_MODEL_BYTES/s);
  });
}

test("an upload whose connection breaks goes on where it stopped", async (t) => {
  const { service, runner, run } = await prepareStep(t);
  const size = 64_000_000;
  await writeFile(path.join(runner.workspace, "large.onnx"), randomBytes(size));
  const relay = await startServiceRelay(t, service.baseUrl, { breaksUploadAfter: size / 2 });
  const { log } = await run({ models: "large.onnx", "service-url": relay.baseUrl });
  assert.match(log, /^\[upload\] large\.onnx: continues at [\d.]+ MB of 64\.0 MB$/m);
  assert.match(log, /^\[upload\] large\.onnx: uploaded, 64\.0 MB/m);
  // The rest is what was on its way when the connection broke.
  assert.ok(relay.uploadedBytes() < 1.25 * size, `${relay.uploadedBytes()} bytes were sent`);
});

test("an upload goes on after the service was killed and started again", async (t) => {
  const environment = { MOS_PORT: String(await findFreePort()) };
  const { service, runner, inputs } = await prepareStep(t, { environment });
  const size = 64_000_000;
  await writeFile(path.join(runner.workspace, "large.onnx"), randomBytes(size));
  const relay = await startServiceRelay(t, service.baseUrl, { stallsUploadAfter: size / 2 });
  const given = { models: "large.onnx", "service-url": relay.baseUrl };
  const step = await runner.start({ ...inputs, ...given });
  await relay.stalled;
  const incoming = path.join(service.directory, "incoming");
  await until("the service has stored a part of it", async () => {
    const [partial] = await readdir(incoming);
    return partial !== undefined && (await stat(path.join(incoming, partial))).size > size / 4;
  });
  service.process.kill("SIGKILL");
  await once(service.process, "exit");
  await startRunningService(t, { from: service, environment });
  const { log } = await step.ended;
  assert.match(log, /^\[upload\] large\.onnx: continues at [\d.]+ MB of 64\.0 MB$/m);
  assert.match(log, /^\[upload\] large\.onnx: uploaded, 64\.0 MB/m);
});

test("a step that leaves the check runs to the service learns where the service cannot write them", async (t) => {
  const { run } = await prepareStep(t);
  const { code, commands } = await run({ wait: "false" });
  assert.equal(code, 1);
  assert.match(errorMessages(commands), /report.*GitHub App/);
});
