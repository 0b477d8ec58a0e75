import assert from "node:assert/strict";
import test from "node:test";
import { limits } from "../../src/contract/limits.ts";
import { makeTestApp, problemIn } from "./test-app.ts";

const job = { model: { source: "https://models.example/m.onnx" }, target: "cpu" };

function unknownKeys(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
}

test("a stranger's body for a token exchange is refused from 20 KB on", async (t) => {
  const app = await makeTestApp(t);
  const body = unknownKeys(400_000);
  const answer = await app.ask("POST /v1/tokens/exchange", { token: null, body });
  assert.equal(answer.status, 413);
  assert.ok((await answer.text()).length < 1000);
});

test("an answer lists the first invalid fields, and counts the others", async (t) => {
  const app = await makeTestApp(t);
  const body = { ...job, ...unknownKeys(1000) };
  const problem = await problemIn(await app.ask("POST /v1/compress", { body }));
  assert.equal(problem.code, "validation_failed");
  assert.equal(problem.errors?.length, limits.listedErrors);
  assert.match(problem.detail, /^Field "\/k0" is invalid and 999 more$/);
});

test("the name of an unknown field is shortened in the answer", async (t) => {
  const app = await makeTestApp(t);
  const body = { ...job, ["x".repeat(100_000)]: 1 };
  const answer = await app.ask("POST /v1/compress", { body });
  assert.equal(answer.status, 422);
  assert.ok((await answer.text()).length < 2000);
});

const hostile = {
  "nested 100,000 deep": `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
  "with an object nested 1,000 deep": `${'{"a":'.repeat(1000)}1${"}".repeat(1000)}`,
  "of 600,000 values": `{"models":[${"0,".repeat(600_000)}0]}`,
  "of 400,000 keys": JSON.stringify({ models: unknownKeys(100_000) }),
  "with 100,000 labels": JSON.stringify({ labels: unknownKeys(100_000) }),
};

for (const [name, body] of Object.entries(hostile)) {
  test(`a batch ${name} is refused before it is parsed`, async (t) => {
    const app = await makeTestApp(t);
    const problem = await problemIn(await app.ask("POST /v1/batches", { body }));
    assert.equal(problem.code, "payload_too_large");
  });
}

test("brackets and quotes in texts do not count as depth", async (t) => {
  const app = await makeTestApp(t);
  const body = { ...job, name: `${"[{".repeat(50)}\\"` };
  assert.equal((await app.ask("POST /v1/compress", { body })).status, 202);
});

test("33 labels are refused", async (t) => {
  const app = await makeTestApp(t);
  const labels = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`label${i}`, "x"]));
  const problem = await problemIn(await app.ask("POST /v1/compress", { body: { ...job, labels } }));
  assert.match(problem.errors?.[0]?.message ?? "", /32 entries/);
});

test("thousands of unknown parameters are refused with a short answer", async (t) => {
  const app = await makeTestApp(t);
  const query = Array.from({ length: 15_000 }, (_, i) => i.toString(36)).join("&");
  const answer = await app.ask(`GET /v1/jobs?${query}`);
  assert.equal(answer.status, 422);
  assert.ok((await answer.text()).length < 4000);
});
