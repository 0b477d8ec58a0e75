import assert from "node:assert/strict";
import test from "node:test";
import type { TestContext } from "node:test";
import { z } from "zod";
import { makeTestApp, problemIn, startJob, beginTestWorker } from "./test-app.ts";

const content = "0123456789";

async function finishedJob(t: TestContext) {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  const { sha256, bytes } = await worker.store(content);
  const artifact = { name: "model.onnx", kind: "model", bytes, sha256 } as const;
  await worker.report({ type: "status", status: "Sharding" }, { type: "artifact", artifact });
  const path = `/v1/jobs/${id}/artifacts`;
  return { ...app, path, artifact, etag: `"${sha256}"` };
}

test("the files of a job are listed and downloaded", async (t) => {
  const { ask, path, artifact, etag } = await finishedJob(t);
  assert.deepEqual(await (await ask(`GET ${path}`)).json(), { artifacts: [artifact] });
  const answer = await ask(`GET ${path}/model.onnx`);
  assert.equal(answer.status, 200);
  assert.equal(await answer.text(), content);
  assert.equal(answer.headers.get("content-type"), "application/octet-stream");
  assert.equal(answer.headers.get("content-length"), "10");
  assert.equal(answer.headers.get("etag"), etag);
  assert.equal(answer.headers.get("accept-ranges"), "bytes");
  assert.equal(answer.headers.get("content-disposition"), 'attachment; filename="model.onnx"');
});

test("a file that is not stored any more is said to be gone, before an answer begins", async (t) => {
  const { ask, path, artifact, blobs, logged } = await finishedJob(t);
  const link = await ask(`POST ${path}/model.onnx/link`, { body: {} });
  const { url } = z.object({ url: z.url() }).parse(await link.json());
  await blobs.delete(artifact.sha256, new Date(Date.now() + 60_000));
  const calls = [`GET ${path}/model.onnx`, `HEAD ${path}/model.onnx`];
  calls.push(`GET ${url.slice(new URL(url).origin.length)}`);
  for (const call of calls) {
    const headers = { range: "bytes=2-4" };
    for (const answer of [await ask(call), await ask(call, { headers })]) {
      assert.equal(answer.status, 410);
      if (call.startsWith("HEAD")) continue;
      const { code, detail } = await problemIn(answer);
      assert.equal(code, "artifact_missing");
      assert.match(detail, /^"model.onnx" of job "job-\w+" is not stored any more/);
    }
  }
  assert.match(
    logged.join("\n"),
    /^error A file of a job is not stored .*"artifact":"model.onnx"/m,
  );
  assert.match(await (await ask("GET /metrics")).text(), /^mos_missing_files_total 6$/m);
});

test("HEAD of a file gives its headers and no bytes", async (t) => {
  const { ask, path } = await finishedJob(t);
  const answer = await ask(`HEAD ${path}/model.onnx`);
  assert.equal(answer.headers.get("content-length"), "10");
  assert.equal(await answer.text(), "");
});

test("HEAD gives the headers of the whole file, whatever part is asked for", async (t) => {
  const { ask, path } = await finishedJob(t);
  for (const range of ["bytes=2-4", "bytes=10-"]) {
    const answer = await ask(`HEAD ${path}/model.onnx`, { headers: { range } });
    assert.equal(answer.status, 200, range);
    assert.equal(answer.headers.get("content-length"), "10");
    assert.equal(answer.headers.get("content-range"), null);
  }
});

test("a part of a file is downloaded", async (t) => {
  const { ask, path } = await finishedJob(t);
  const answer = await ask(`GET ${path}/model.onnx`, { headers: { range: "bytes=2-4" } });
  assert.equal(answer.status, 206);
  assert.equal(answer.headers.get("content-range"), "bytes 2-4/10");
  assert.equal(answer.headers.get("content-length"), "3");
  assert.equal(await answer.text(), "234");
});

test("a part outside of a file is refused with the file's size", async (t) => {
  const { ask, path } = await finishedJob(t);
  const answer = await ask(`GET ${path}/model.onnx`, { headers: { range: "bytes=10-" } });
  assert.equal(answer.headers.get("content-range"), "bytes */10");
  assert.equal((await problemIn(answer)).code, "range_not_satisfiable");
});

test("a part of another version of the file is answered with the whole file", async (t) => {
  const { ask, path, etag } = await finishedJob(t);
  const part = { range: "bytes=2-4" };
  assert.equal(
    (await ask(`GET ${path}/model.onnx`, { headers: { ...part, "if-range": '"old"' } })).status,
    200,
  );
  assert.equal(
    (await ask(`GET ${path}/model.onnx`, { headers: { ...part, "if-range": etag } })).status,
    206,
  );
});

test("a file that the caller has is not sent again", async (t) => {
  const { ask, path, etag } = await finishedJob(t);
  for (const tags of [etag, `W/${etag}`, `"a", ${etag}`, "*"]) {
    const answer = await ask(`GET ${path}/model.onnx`, { headers: { "if-none-match": tags } });
    assert.equal(answer.status, 304, tags);
    assert.equal(answer.headers.get("etag"), etag);
    assert.equal(answer.body, null);
  }
  assert.equal(
    (await ask(`GET ${path}/model.onnx`, { headers: { "if-none-match": '"a"' } })).status,
    200,
  );
});

test("a file that the job has not is not found, whatever its name", async (t) => {
  const { ask, path } = await finishedJob(t);
  assert.equal((await problemIn(await ask(`GET ${path}/weights.bin`))).code, "not_found");
  assert.equal((await ask(`GET ${path}/..%2f..%2fservice.sqlite`)).status, 404);
});
