import assert from "node:assert/strict";
import test from "node:test";
import { makeTestApp, problemIn } from "./test-app.ts";

const body = { model: { source: "https://models.example/detector.onnx" }, target: "cpu" };
const headers = { "idempotency-key": "key-1" };
const creations: [string, object][] = [
  ["POST /v1/compress", body],
  ["POST /v1/quantize", body],
  ["POST /v1/batches", { models: [body.model], targets: ["cpu", "cpu-int8"] }],
  ["POST /v1/tokens", { name: "ci", scopes: ["jobs:read"] }],
  ["POST /v1/webhooks", { url: "https://hooks.example/jobs" }],
];

for (const [call, request] of creations) {
  test(`${call} with the same Idempotency-Key gives the first answer and creates nothing more`, async (t) => {
    const { ask, submitted } = await makeTestApp(t);
    const first = await ask(call, { body: request, headers });
    const made = submitted.length;
    const again = await ask(call, { body: request, headers });
    assert.equal(first.headers.get("idempotency-replayed"), null);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
    assert.equal(again.status, first.status);
    assert.equal(again.headers.get("location"), first.headers.get("location"));
    assert.deepEqual(await again.json(), await first.json());
    assert.equal(submitted.length, made);
  });
}

test("the same Idempotency-Key with another body or endpoint is refused", async (t) => {
  const { ask } = await makeTestApp(t);
  await ask("POST /v1/compress", { body, headers });
  const other = await ask("POST /v1/compress", { body: { ...body, target: "cpu-int8" }, headers });
  assert.equal((await problemIn(other)).code, "idempotency_key_reused");
  assert.equal(
    (await problemIn(await ask("POST /v1/quantize", { body, headers }))).code,
    "idempotency_key_reused",
  );
});

test("the order of fields does not make another body", async (t) => {
  const { ask } = await makeTestApp(t);
  await ask("POST /v1/compress", { body, headers });
  const turned = Object.fromEntries(Object.entries(body).toReversed());
  assert.equal(
    (await ask("POST /v1/compress", { body: turned, headers })).headers.get("idempotency-replayed"),
    "true",
  );
});

test("a key whose request was refused may be used again", async (t) => {
  const { ask } = await makeTestApp(t);
  assert.equal(
    (await ask("POST /v1/compress", { body: { ...body, target: "gpu" }, headers })).status,
    422,
  );
  assert.equal((await ask("POST /v1/compress", { body, headers })).status, 202);
});

test("a repeated request gets the first answer also where another one would be refused", async (t) => {
  const { ask } = await makeTestApp(t, { maxWaitingJobs: 1 });
  const first = await ask("POST /v1/compress", { body, headers });
  assert.equal((await problemIn(await ask("POST /v1/compress", { body }))).code, "too_many_jobs");
  const again = await ask("POST /v1/compress", { body, headers });
  assert.deepEqual(await again.json(), await first.json());
});

test("a key holds only for one token", async (t) => {
  const { ask, tokenFor, submitted } = await makeTestApp(t);
  await ask("POST /v1/compress", { body, headers });
  const other = await ask("POST /v1/compress", {
    body,
    headers,
    token: await tokenFor("jobs:write"),
  });
  assert.equal(other.headers.get("idempotency-replayed"), null);
  assert.equal(submitted.length, 2);
});

test("requests with one key that come together get one answer", async (t) => {
  const { ask, submitted } = await makeTestApp(t);
  const answers = await Promise.all(
    [1, 2, 3].map(async () => ask("POST /v1/compress", { body, headers })),
  );
  const replayed = answers.map((answer) => answer.headers.get("idempotency-replayed"));
  assert.deepEqual(new Set(replayed), new Set([null, "true"]));
  const jobs = await Promise.all(answers.map(async (answer) => answer.json()));
  assert.deepEqual(jobs, [jobs[0], jobs[0], jobs[0]]);
  assert.equal(submitted.length, 1);
});

test("a key is forgotten after 24 hours", async (t) => {
  const { ask, advance, submitted } = await makeTestApp(t);
  await ask("POST /v1/compress", { body, headers });
  advance(24 * 3_600_000);
  assert.equal(
    (await ask("POST /v1/compress", { body, headers })).headers.get("idempotency-replayed"),
    null,
  );
  assert.equal(submitted.length, 2);
});
