import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test, { type TestContext } from "node:test";
import { sql } from "kysely";
import { job } from "../../src/contract/jobs/job.ts";
import { limits } from "../../src/contract/limits.ts";
import { modelRoutes } from "../../src/contract/routes/model-routes.ts";
import { uploadSource } from "../../src/contract/models/model-source.ts";
import { assignment } from "../../src/contract/worker-protocol/messages.ts";
import { Changes } from "../../src/records/database/changes.ts";
import { openDatabase } from "../../src/records/database/open-database.ts";
import { purgeReleasedBlobs } from "../../src/service/storage-folder/purge-regularly.ts";
import { keptDatabase } from "../support/test-database.ts";
import { pushed, tenantToken } from "./tenant-tokens.ts";
import {
  beginTestWorker,
  followAddress,
  makeTestApp,
  problemIn,
  startJob,
  type TestApp,
} from "./test-app.ts";

const dayMs = 86_400_000;

async function upload(app: TestApp, content: string, token?: string): Promise<string> {
  const sha256 = createHash("sha256").update(content).digest("hex");
  const headers = { "content-type": "" };
  const question = { body: content, headers, ...(token === undefined ? {} : { token }) };
  const answer = await app.ask(`PUT /v1/models/${sha256}`, question);
  assert.equal(answer.status, 201);
  return sha256;
}

async function createManifest(app: TestApp, files: readonly object[]): Promise<Response> {
  return app.ask("POST /v1/manifests", { body: { files } });
}

async function makeManifest(t: TestContext) {
  const app = await makeTestApp(t);
  const [model, weights] = [await upload(app, "model"), await upload(app, "weights")];
  const files = [
    { path: "net.onnx", sha256: model },
    { path: "net.data", sha256: weights },
  ];
  const answer = await createManifest(app, files);
  assert.equal(answer.status, 201);
  const created = modelRoutes.createManifest.replies[201].json.parse(await answer.json());
  const { source, sha256 } = created;
  return { app, files, model, weights, source, sha256 };
}

test("a worker gets the files of a manifest, and may read them", async (t) => {
  const { app, files, weights, source } = await makeManifest(t);
  assert.equal((await createManifest(app, files)).status, 200);
  const { id } = await startJob(app, { model: { source } });
  const { secret: token } = await beginTestWorker(app, id);
  const answer = await app.ask(`GET /worker/v1/jobs/${id}`, { token });
  const { model } = assignment.parse(await answer.json());
  assert.deepEqual(model.files, [
    { ...files[0], bytes: 5 },
    { ...files[1], bytes: 7 },
  ]);
  const blob = await app.ask(`GET /worker/v1/jobs/${id}/blobs/${weights}`, { token });
  assert.equal(await (await followAddress(blob)).text(), "weights");
});

test("a workflow that uploads the text of another repository's manifest gets no files", async (t) => {
  const app = await makeTestApp(t);
  const { token: owner } = await tenantToken(app, { workflow: pushed });
  const stranger = { ...pushed, repositoryId: "999", repository: "acme/stranger" };
  const { token } = await tenantToken(app, { workflow: stranger });
  const secret = await upload(app, "secret weights", owner);
  const files = [{ path: "net.onnx", sha256: secret }];
  const source = uploadSource(await upload(app, JSON.stringify({ files }), token));
  const created = await app.ask("POST /v1/manifests", { body: { files }, token: owner });
  assert.equal(created.status, 201);
  const assigned = async (asking: string) => {
    const body = { model: { source }, target: "cpu" };
    const answer = await app.ask("POST /v1/compress", { body, token: asking });
    const { id } = job.parse(await answer.json());
    const worker = await beginTestWorker(app, id);
    const path = `worker/v1/jobs/${id}`;
    const { model } = assignment.parse(
      await (await app.ask(`GET /${path}`, { token: worker.secret })).json(),
    );
    const blob = await app.ask(`GET /${path}/blobs/${secret}`, { token: worker.secret });
    return { files: model.files, canRead: blob.status !== 404 };
  };
  assert.deepEqual(await assigned(token), { files: undefined, canRead: false });
  assert.deepEqual(await assigned(owner), { files: [{ ...files[0], bytes: 14 }], canRead: true });
});

for (const [what, paths, pointer] of [
  ["a path that leads out", ["net.onnx", "../secret"], "/files/1/path"],
  ["an absolute path", ["/net.onnx"], "/files/0/path"],
  ["a path with a backslash", ["net.onnx", "a\\b"], "/files/1/path"],
  ["the same path twice", ["net.onnx", "net.onnx"], "/files"],
  ["a file that is a folder of another", ["net", "net/weights"], "/files"],
  ["no file", [], "/files"],
] as const) {
  test(`a manifest with ${what} is refused by its field`, async (t) => {
    const app = await makeTestApp(t);
    const sha256 = await upload(app, "model");
    const answer = await createManifest(
      app,
      paths.map((path) => ({ path, sha256 })),
    );
    const { code, errors } = await problemIn(answer);
    assert.equal(code, "validation_failed");
    assert.equal(errors?.[0]?.pointer, pointer);
  });
}

test("a manifest of files that were not uploaded, or are too large together, is refused", async (t) => {
  const { app, files } = await makeManifest(t);
  const unknown = { path: "other.data", sha256: "0".repeat(64) };
  const { code, errors } = await problemIn(await createManifest(app, [...files, unknown]));
  assert.equal(code, "model_not_found");
  assert.deepEqual(errors, [{ pointer: "/files/2/sha256", message: "Was not uploaded" }]);
  const large = { path: "large.data", sha256: await upload(app, "x".repeat(990)) };
  const refusal = await problemIn(await createManifest(app, [...files, large]));
  assert.equal(refusal.code, "model_too_large");
});

test("files of a manifest stay while a job needs it, and the manifest goes with them", async (t) => {
  const { app, weights, source, sha256 } = await makeManifest(t);
  const { id } = await startJob(app, { model: { source } });
  for (const hash of [weights, sha256]) {
    const refusal = await problemIn(await app.ask(`DELETE /v1/models/${hash}`));
    assert.equal(refusal.code, "model_in_use");
    assert.match(refusal.detail, new RegExp(id));
  }
  await app.ask(`POST /v1/jobs/cancel/${id}`);
  assert.equal((await app.ask(`DELETE /v1/models/${weights}`)).status, 204);
  assert.equal((await app.ask(`HEAD /v1/models/${sha256}`)).status, 404);
  const body = { model: { source }, target: "cpu" };
  const refusal = await problemIn(await app.ask("POST /v1/compress", { body }));
  assert.equal(refusal.code, "model_not_found");
});

test("a file goes with all the manifests that name it, more than a query has parameters", async (t) => {
  const database = await keptDatabase(t);
  const app = await makeTestApp(t, { database });
  const sha256 = await upload(app, "weights");
  const { db, close } = await openDatabase(database, new Changes());
  t.after(close);
  await sql`insert into manifest_files (project, manifest, position, path, sha256, bytes)
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 33000)
    select 'default', 'manifest ' || n, 0, 'net.onnx', ${sha256}, 7 from numbers`.execute(db);
  assert.equal((await app.ask(`DELETE /v1/models/${sha256}`)).status, 204);
  assert.deepEqual(await db.selectFrom("manifest_files").selectAll().limit(1).execute(), []);
  assert.equal((await app.ask(`HEAD /v1/models/${sha256}`)).status, 404);
});

test("a project has as many manifests as it may, and of one more nothing is stored", async (t) => {
  const database = await keptDatabase(t);
  const app = await makeTestApp(t, { database });
  const files = [{ path: "net.onnx", sha256: await upload(app, "model") }];
  assert.equal((await createManifest(app, files)).status, 201);
  const { db, close } = await openDatabase(database, new Changes());
  t.after(close);
  await sql`insert into manifest_files (project, manifest, position, path, sha256, bytes)
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers
      where n < ${limits.manifests - 1})
    select 'default', 'manifest ' || n, 0, 'net.onnx', 'a', 7 from numbers`.execute(db);
  const other = [{ path: "other.onnx", sha256: await upload(app, "model 2") }];
  assert.equal((await problemIn(await createManifest(app, other))).code, "too_many_manifests");
  const text = JSON.stringify({ files: other });
  assert.equal(await app.blobs.find(createHash("sha256").update(text).digest("hex")), undefined);
  assert.equal((await createManifest(app, files)).status, 200);
});

test("a sweep leaves the files that a live job's manifest has in common with others", async (t) => {
  const { app, files, model, weights, source } = await makeManifest(t);
  const other = await upload(app, "another model");
  await createManifest(app, [{ path: "other.onnx", sha256: other }, ...files.slice(1)]);
  const { id } = await startJob(app, { model: { source } });
  app.advance(2 * dayMs);
  for (let sweep = 0; sweep < 2; sweep++) await app.records.deleteExpired({ models: dayMs });
  // Times of files are the disk's own.
  await purgeReleasedBlobs(app.records, app.blobs, new Date(Date.now() + 2 * dayMs));
  assert.equal(await app.blobs.find(other), undefined);
  const { secret: token } = await beginTestWorker(app, id);
  for (const [hash, content] of [
    [model, "model"],
    [weights, "weights"],
  ] as const) {
    const blob = await app.ask(`GET /worker/v1/jobs/${id}/blobs/${hash}`, { token });
    assert.equal(await (await followAddress(blob)).text(), content);
  }
});

test("files of a manifest expire after the manifest, which a job keeps", async (t) => {
  const { app, model, weights, source, sha256 } = await makeManifest(t);
  const { id } = await startJob(app, { model: { source } });
  const areKept = async () => {
    const asked = [model, weights, sha256].map((hash) => app.ask(`HEAD /v1/models/${hash}`));
    return (await Promise.all(asked)).map(({ status }) => status === 200);
  };
  const expire = () => app.records.deleteExpired({ models: dayMs });
  app.advance(2 * dayMs);
  await expire();
  assert.deepEqual(await areKept(), [true, true, true]);
  await app.ask(`POST /v1/jobs/cancel/${id}`);
  // The manifest goes first or second, its files at the latest when it is gone.
  await expire();
  await expire();
  assert.deepEqual(await areKept(), [false, false, false]);
});
