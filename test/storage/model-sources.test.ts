import assert from "node:assert/strict";
import { createHash, randomBytes, randomInt } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import type { z } from "zod";
import { sourceCredentials } from "../../src/contract/models/source-credentials.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { fetchModel } from "../../src/storage/fetch-model.ts";
import { putObject } from "../../src/storage/s3/objects.ts";
import { createS3Client } from "../../src/storage/s3/s3-client.ts";
import { lookupLimits } from "../../src/storage/sources/limit-lookups.ts";
import { createModelSources } from "../../src/storage/sources/model-sources.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { commit, hubToken, startHubStandIn } from "./hub-stand-in.ts";
import { cutAfter, startFaultyS3Server } from "./s3-server.ts";

const mebibyte = 1024 ** 2;
const content = randomBytes(12 * mebibyte);
const sha256 = createHash("sha256").update(content).digest("hex");

function openSources(t: TestContext, credentials: z.input<typeof sourceCredentials>) {
  const sources = createModelSources(sourceCredentials.parse(credentials));
  t.after(() => sources[Symbol.asyncDispose]());
  return sources;
}

/** Fetches as a worker of a project does. */
async function fetchFor(
  t: TestContext,
  sources: ReturnType<typeof openSources>,
  { project = "team", allowPrivateAddresses = true } = {},
) {
  const folder = await mkdtemp(path.join(tmpdir(), "sources-"));
  t.after(async () => rm(folder, { recursive: true }));
  const file = path.join(folder, "model.onnx");
  const blobs = await createDirectoryBlobStore(path.join(folder, "store"));
  const fetched = async (source: string) =>
    fetchModel(
      { source },
      {
        blobs,
        path: file,
        limits: { maxModelBytes: 1e9, allowedRoots: [], allowPrivateAddresses },
        signal: t.signal,
        locateSource: (asked) => sources.locate(project, asked),
        onProgress: () => {},
      },
    );
  return { fetched, file };
}

async function startHub(t: TestContext) {
  const files = { "onnx/model.onnx": content, "a b.onnx": content };
  const hub = await startHubStandIn(t, files);
  const { endpoint } = hub;
  const access = { owner: "acme", token: hubToken, endpoint, projects: ["team"] };
  const sources = openSources(t, { hf: [access, { endpoint }] });
  return { hub, sources };
}

for (const [source, pinned] of [
  ["hf://acme/public/onnx/model.onnx", `hf://acme/public@${commit}/onnx/model.onnx`],
  ["hf://acme/private@main/a b.onnx", `hf://acme/private@${commit}/a b.onnx`],
  ["hf://acme/public@refs%2Fpr%2F1/a b.onnx", `hf://acme/public@${commit}/a b.onnx`],
  ["hf://acme/renamed/a b.onnx", `hf://acme/renamed@${commit}/a b.onnx`],
  ["hf://acme/unasked@" + `${commit}/x`, `hf://acme/unasked@${commit}/x`],
] as const) {
  test(`pin() makes ${source} a file of a commit`, async (t) => {
    const { sources } = await startHub(t);
    assert.equal(await sources.pin("team", source), pinned);
  });
}

for (const [source, code, reason] of [
  ["hf://acme/public/absent.onnx", "model_not_found", /EntryNotFound/],
  ["hf://acme/public@v9/onnx/model.onnx", "model_not_found", /RevisionNotFound/],
  ["hf://acme/absent/model.onnx", "model_not_found", /RepoNotFound/],
  ["hf://acme/public/../private/x", "model_source_refused", /must not have "\."/],
  ["hf://../public/x", "model_source_refused", /must not have "\."/],
  ["hf://acme/..@main/x", "model_source_refused", /as a name/],
  ["hf://acme/public@%2e%2e/x", "model_source_refused", /in its revision/],
  ["hf://acme/public@%zz/x", "model_source_refused", /percent-encoded/],
  ["s3://bucket/a/../b", "model_source_refused", /must not have "\."/],
  ["s3://bucket/key", "model_source_refused", /no credentials of project "team"/],
] as const) {
  test(`pin() refuses ${source}, and says why without a secret`, async (t) => {
    const { sources } = await startHub(t);
    await assert.rejects(sources.pin("team", source), (error: Error & { code?: string }) => {
      assert.equal(error.code, code);
      assert.match(error.message, reason);
      assert.ok(!error.message.includes(hubToken));
      return true;
    });
  });
}

test("a project's token is only for that project", async (t) => {
  const { sources } = await startHub(t);
  await assert.rejects(sources.pin("other", "hf://acme/private/onnx/model.onnx"), {
    code: "model_not_found",
    message: /no token that may read it \(GatedRepo\)/,
  });
});

test("a project with hundreds of slow names does not delay others", async (t) => {
  const slow: ServerResponse[] = [];
  const answer = (response: ServerResponse) =>
    void response.writeHead(200, { "x-repo-commit": commit }).end();
  let isSlow = true;
  const server = createServer(({ url = "" }, response) => {
    if (isSlow && url.startsWith("/acme/slow/")) slow.push(response);
    else answer(response);
  });
  const sources = openSources(t, { hf: [{ endpoint: await listenLocally(t, server) }] });
  const pins = Array.from({ length: 300 }, (_, i) => sources.pin("busy", `hf://acme/slow/${i}`));
  assert.equal(await sources.pin("other", "hf://acme/quick/x"), `hf://acme/quick@${commit}/x`);
  assert.ok(slow.length <= lookupLimits.ofProject);
  isSlow = false;
  slow.forEach(answer);
  assert.equal((await Promise.all(pins)).at(-1), `hf://acme/slow@${commit}/299`);
});

test("a Hub that does not answer is named", async (t) => {
  const sources = openSources(t, { hf: [{ endpoint: "http://127.0.0.1:1" }] });
  await assert.rejects(sources.pin("team", "hf://acme/public/x"), {
    code: "model_fetch_failed",
    message: /ECONNREFUSED/,
  });
});

test("a model of the Hub that breaks off at random is fetched from where it broke off", async (t) => {
  const { hub, sources } = await startHub(t);
  const { fetched, file } = await fetchFor(t, sources);
  hub.cuts.push(...Array.from({ length: 4 }, () => randomInt(mebibyte, 2 * mebibyte)));
  const source = `hf://acme/private@${commit}/onnx/model.onnx`;
  assert.deepEqual(await fetched(source), { path: file, bytes: content.length, sha256 });
  assert.ok((await readFile(file)).equals(content));
  const transfers = hub.requests.filter((request) => request.startsWith("storage"));
  assert.equal(transfers.length, 5, transfers.join(", "));
  for (const transfer of transfers.slice(1)) assert.match(transfer, /bytes=[1-9]\d{5,}-$/);
  assert.equal(hub.leaks, 0);
});

test("the Hub may be private, but what it leads to may not", async (t) => {
  const { hub, sources } = await startHub(t);
  const { fetched } = await fetchFor(t, sources, { allowPrivateAddresses: false });
  await assert.rejects(fetched(`hf://acme/public@${commit}/onnx/model.onnx`), {
    code: "model_source_refused",
  });
  assert.deepEqual(hub.requests, [`GET /acme/public/resolve/${commit}/onnx/model.onnx`]);
});

test("a Hub that answers the file itself needs no other origin", async (t) => {
  const endpoint = await listenLocally(
    t,
    createServer((_request, response) => response.end(content)),
  );
  const sources = openSources(t, { hf: [{ endpoint }] });
  const { fetched } = await fetchFor(t, sources, { allowPrivateAddresses: false });
  assert.equal((await fetched(`hf://acme/public@${commit}/small.onnx`)).sha256, sha256);
});

for (const scheme of ["s3", "gs"] as const) {
  test(`${scheme}:// models are read with the project's key`, { skip: s3Missing }, async (t) => {
    const { access, faults, requests } = await startFaultyS3Server(t);
    const key = "team/a b+c#d?e%20f'(1).onnx";
    await using client = createS3Client(access);
    await putObject(client, key, { content });
    const { isPathStyle: pathStyle, ...rest } = access;
    const sources = openSources(t, { [scheme]: [{ ...rest, pathStyle, projects: ["team"] }] });
    const source = `${scheme}://${access.bucket}/${key}`;
    assert.equal(await sources.pin("team", source), source);
    await assert.rejects(sources.pin("other", source), { code: "model_source_refused" });
    const { fetched } = await fetchFor(t, sources, { allowPrivateAddresses: false });
    faults.push(cutAfter(5 * mebibyte));
    requests.length = 0;
    assert.equal((await fetched(source)).sha256, sha256);
    assert.equal(requests.length, 2);
    assert.match(requests[1] ?? "", /bytes=[1-9]\d{5,}-$/);
  });
}

test("an object that is not there is not found", { skip: s3Missing }, async (t) => {
  const { access } = await startFaultyS3Server(t);
  const { isPathStyle: pathStyle, ...rest } = access;
  const sources = openSources(t, { s3: [{ ...rest, pathStyle }] });
  const { fetched } = await fetchFor(t, sources);
  await assert.rejects(fetched(`s3://${access.bucket}/absent.onnx`), (error: Error) => {
    assert.match(error.message, /absent\.onnx" does not exist: the host answered 404/);
    assert.doesNotMatch(error.message, /X-Amz/);
    return true;
  });
});
