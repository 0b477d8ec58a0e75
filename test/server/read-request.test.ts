import assert from "node:assert/strict";
import test from "node:test";
import { limits } from "../../src/contract/limits.ts";
import { makeTestApp, problemIn } from "./test-app.ts";

const source = "https://models.example/detector.onnx";

test("every bad field of a body is named with its JSON pointer", async (t) => {
  const { ask } = await makeTestApp(t);
  const body = {
    model: { source: "ftp://models.example/x.onnx", pin: 1 },
    target: "CPU",
    recipe: { evaluation: { latencyBudgetSeconds: -1 }, "a/b": 1 },
    labels: { a: 1 },
  };
  const problem = await problemIn(await ask("POST /v1/compress", { body }));
  assert.equal(problem.code, "validation_failed");
  assert.deepEqual(problem.errors?.map(({ pointer }) => pointer).toSorted(), [
    "/labels/a",
    "/model/pin",
    "/model/source",
    "/recipe/a~1b",
    "/recipe/evaluation/latencyBudgetSeconds",
    "/target",
  ]);
});

test("bad fields of the query, the headers and the body are named together", async (t) => {
  const { ask } = await makeTestApp(t);
  const headers = { "idempotency-key": "a key" };
  const problem = await problemIn(await ask("POST /v1/compress?dry=1", { headers, body: {} }));
  const pointers = problem.errors?.map(({ pointer }) => pointer);
  assert.deepEqual(pointers, ["query/dry", "header/idempotency-key", "/model", "/target"]);
});

test("a path that cannot be a resource's is not found, and its field is named", async (t) => {
  const { ask } = await makeTestApp(t);
  const problem = await problemIn(await ask("GET /v1/batches/None"));
  assert.equal(problem.code, "not_found");
  assert.deepEqual(
    problem.errors?.map(({ pointer }) => pointer),
    ["path/id"],
  );
});

const queries: [string, string][] = [
  ["limit=0", "query/limit"],
  ["limit=201", "query/limit"],
  ["limit=", "query/limit"],
  ["limit=0x10", "query/limit"],
  ["limit=1e1", "query/limit"],
  ["limit=1&limit=2", "query/limit"],
  ["kind=compress&kind=quantize", "query/kind"],
  ["status=Done", "query/status/0"],
  ["createdAfter=yesterday", "query/createdAfter"],
  ["sort=name", "query/sort"],
  ["__proto__=1", "query/__proto__"],
];

for (const [query, pointer] of queries) {
  test(`GET /jobs refuses the query ${query}`, async (t) => {
    const { ask } = await makeTestApp(t);
    const problem = await problemIn(await ask(`GET /v1/jobs?${query}`));
    assert.equal(problem.code, "validation_failed");
    assert.deepEqual(
      problem.errors?.map((field) => field.pointer),
      [pointer],
    );
  });
}

test("a parameter for several values may be repeated", async (t) => {
  const { ask } = await makeTestApp(t);
  assert.equal(
    (await ask("GET /v1/jobs?status=Pending&status=Failed&label=a&label=b=c")).status,
    200,
  );
});

for (const [what, body, detail] of [
  ["text that is not JSON", "{", /^The body is not JSON in UTF-8$/],
  ["nothing", "", /^The body is empty and must be JSON/],
] as const) {
  test(`a body of ${what} is refused as malformed`, async (t) => {
    const { ask } = await makeTestApp(t);
    const problem = await problemIn(await ask("POST /v1/compress", { body }));
    assert.equal(problem.code, "malformed_request");
    assert.match(problem.detail, detail);
  });
}

test("a body that is not UTF-8 is refused as malformed", async (t) => {
  const { app, tokenFor } = await makeTestApp(t);
  const answer = await app.request("/v1/compress", {
    method: "POST",
    headers: {
      authorization: `Bearer ${await tokenFor("jobs:write")}`,
      "content-type": "application/json",
    },
    body: new Uint8Array([0x22, 0xff, 0x22]),
  });
  assert.equal((await problemIn(answer)).code, "malformed_request");
});

for (const type of [
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
]) {
  test(`a JSON body sent as ${type} is refused`, async (t) => {
    const { ask } = await makeTestApp(t);
    const body = { model: { source }, target: "cpu" };
    const answer = await ask("POST /v1/compress", { body, headers: { "content-type": type } });
    assert.equal((await problemIn(answer)).code, "unsupported_media_type");
  });
}

test("a compressed body is refused as such, and not as one that is not JSON", async (t) => {
  const { ask } = await makeTestApp(t);
  const headers = { "content-encoding": "gzip" };
  const answer = await ask("POST /v1/compress", { headers, body: {} });
  assert.equal(answer.headers.get("accept-encoding"), "identity");
  const { code, detail } = await problemIn(answer);
  assert.equal(code, "unsupported_media_type");
  assert.equal(detail, 'Content-Encoding is "gzip", and a body must not be compressed');
});

test("a JSON body may say its charset", async (t) => {
  const { ask } = await makeTestApp(t);
  const headers = { "content-type": "application/json; charset=utf-8" };
  assert.equal(
    (await ask("POST /v1/compress", { body: { model: { source }, target: "cpu" }, headers }))
      .status,
    202,
  );
});

test("a body that says that it is too large is refused before it is read", async (t) => {
  const { ask } = await makeTestApp(t);
  const headers = { "content-length": String(limits.jsonBodyBytes + 1) };
  assert.equal(
    (await problemIn(await ask("POST /v1/compress", { body: {}, headers }))).code,
    "payload_too_large",
  );
});

test("a body that turns out to be too large is not read further", async (t) => {
  const { app, tokenFor } = await makeTestApp(t);
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(1 << 20).fill(0x20));
      sent += 1 << 20;
    },
  });
  const answer = await app.request("/v1/compress", {
    method: "POST",
    headers: {
      authorization: `Bearer ${await tokenFor("jobs:write")}`,
      "content-type": "application/json",
    },
    body,
    duplex: "half",
  });
  assert.equal((await problemIn(answer)).code, "payload_too_large");
  assert.ok(sent <= limits.jsonBodyBytes + (3 << 20), String(sent));
});
