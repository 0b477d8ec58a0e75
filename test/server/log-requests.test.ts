import assert from "node:assert/strict";
import test from "node:test";
import { beginTestWorker, logEvent, makeTestApp, problemIn, startJob } from "./test-app.ts";

test("an answer has the id that its request was given, and the log a line with it", async (t) => {
  const app = await makeTestApp(t);
  const headers = { "x-request-id": "proxy-42" };
  const answer = await app.ask("GET /v1/jobs?model=https://h/m?sig=SECRET", { headers });
  assert.equal(answer.headers.get("x-request-id"), "proxy-42");
  const [line = ""] = app.logged.filter((entry) => entry.includes("A request was answered"));
  assert.match(line, /"requestId":"proxy-42","method":"GET","path":"\/v1\/jobs","status":200/);
  assert.doesNotMatch(line, /SECRET/);
});

for (const given of [undefined, "two words", "x".repeat(200), "tab\there"]) {
  test(`a request with the id ${given?.slice(0, 20)} gets another, in its problem too`, async (t) => {
    const app = await makeTestApp(t);
    const headers = given === undefined ? {} : { "x-request-id": given };
    const answer = await app.ask("GET /v1/nothing", { headers });
    const { requestId } = await problemIn(answer);
    assert.match(requestId ?? "", /^[0-9a-f-]{36}$/);
    assert.equal(answer.headers.get("x-request-id"), requestId);
  });
}

test("probes and workers' reports are answered without a line in the log", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  const before = app.logged.length;
  await app.ask("GET /healthz", { token: null });
  await worker.report(logEvent("a line"));
  assert.equal(app.logged.length, before);
  await app.ask(`GET /worker/v1/jobs/${id}`, { token: "another" });
  assert.equal(app.logged.length, before + 1);
});
