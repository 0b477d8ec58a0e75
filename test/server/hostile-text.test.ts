import assert from "node:assert/strict";
import { Writable } from "node:stream";
import test from "node:test";
import { jsonLog } from "../../src/log/json-log.ts";
import { stripUrlSecrets } from "../../src/storage/strip-url-secrets.ts";
import { splitLogLines } from "../../src/contract/jobs/split-log-lines.ts";
import { attestations } from "../../src/contract/attestations/attestation.ts";
import { completed } from "../github-app/reported-batch.ts";
import { beginTestWorker, makeTestApp, problemIn, startJob } from "./test-app.ts";

const source = "https://models.example/m.onnx";
const hidden = {
  "a line feed": "\n",
  "an escape": "\u001b",
  "a C1 control": "\u009b",
  "a mark of direction": "\u202e",
  "a line separator": "\u2028",
  "a space without width": "\u200b",
  "a joiner of nothing": "\u200d",
  "a soft hyphen": "\u00ad",
  "a tag": "\u{e0041}",
  "half of a surrogate pair": "\ud83d",
};

for (const [name, character] of Object.entries(hidden)) {
  test(`a name, a source or a label with ${name} is refused`, async (t) => {
    const app = await makeTestApp(t);
    const body = {
      name: `model${character}forged`,
      model: { source: `${source}${character}forged` },
      target: "cpu",
    };
    const problem = await problemIn(await app.ask("POST /v1/compress", { body }));
    const pointers = problem.errors?.map(({ pointer }) => pointer);
    assert.ok(pointers?.includes("/name") && pointers.includes("/model/source"), String(pointers));
  });

  test(`an entry of the service's log is one line of plain text, also with ${name}`, async () => {
    let written = "";
    const stream = new Writable({
      write(chunk: Buffer, _encoding, done) {
        written += chunk.toString();
        done();
      },
    });
    jsonLog(stream, () => new Date())("info", `a${character}b`);
    assert.deepEqual(
      written.slice(0, -1).match(/[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028]/gu),
      null,
    );
    assert.equal(JSON.parse(written).message, `a${character}b`);
  });
}

test("a line of a job's log has no marks of direction", () => {
  assert.deepEqual(splitLogLines("a\u202eb\u2028c\td"), ["a\u{fffd}b\u{fffd}c\td"]);
});

test("a source with a line feed makes one line without its secrets", () => {
  const text = stripUrlSecrets("https://user:word@h/m\n2026 forged?sig=SECRET\nmore");
  assert.equal(text, "https://h/m\u{fffd}2026 forged");
});

test("secrets of a source are used, and shown nowhere", async (t) => {
  const app = await makeTestApp(t);
  const signed = "https://models.example/m.onnx?X-Sig=SECRET&part=1#x";
  const body = {
    model: { source: signed },
    target: "cpu",
    recipe: { evaluation: { data: "https://data.example/d.npz?sig=SECRET" } },
  };
  const answers = [await app.ask("POST /v1/compress", { body })];
  const { id } = JSON.parse(await (answers[0] ?? Response.error()).clone().text());
  answers.push(await app.ask(`GET /v1/jobs/${id}`), await app.ask("GET /v1/jobs"));
  answers.push(await app.ask(`POST /v1/jobs/cancel/${id}`));
  for (const answer of answers) {
    const text = await answer.text();
    assert.match(text, /"https:\/\/models\.example\/m\.onnx\?X-Sig=\*\*\*&part=\*\*\*"/);
    assert.match(text, /"https:\/\/data\.example\/d\.npz\?sig=\*\*\*"/);
    assert.doesNotMatch(text, /SECRET/);
  }
  assert.equal((await app.records.jobs.find("default", id))?.model.source, signed);
});

test("what is attested of a result has no secrets of its sources", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app, {
    model: { source: "https://models.example/m.onnx?X-Sig=SECRET" },
    recipe: { evaluation: { data: "https://data.example/d.npz?sig=SECRET" } },
  });
  const worker = await beginTestWorker(app, id);
  const blob = await worker.store("a result");
  await worker.report(
    { type: "status", status: "Sharding" },
    { type: "model", bytes: 1, sha256: "a".repeat(64) },
    { type: "artifact", artifact: { name: "model.onnx", kind: "model", ...blob } },
    { type: "status", status: "Optimizing" },
    completed,
  );
  const answer = await app.ask(`GET /v1/jobs/${id}/attestations`);
  const { envelopes } = attestations.parse(await answer.json());
  const text = envelopes.map(({ payload }) => Buffer.from(payload, "base64").toString()).join();
  assert.match(text, /"source":"https:\/\/models\.example\/m\.onnx\?X-Sig=\*\*\*"/);
  assert.match(text, /"data":"https:\/\/data\.example\/d\.npz\?sig=\*\*\*"/);
  assert.doesNotMatch(text, /SECRET/);
});

test("a source without secrets is shown as it was given", async (t) => {
  const app = await makeTestApp(t);
  assert.equal((await startJob(app, { model: { source } })).model.source, source);
});

test("the log of a request that failed has its path without its query", async (t) => {
  const app = await makeTestApp(t);
  await app.records.close();
  await app.ask("GET /v1/jobs?model=https://models.example/m.onnx?sig=SECRET");
  assert.ok(app.logged.some((line) => line.includes('"path":"/v1/jobs"')));
  assert.doesNotMatch(app.logged.join("\n"), /SECRET/);
});
