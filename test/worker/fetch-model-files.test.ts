import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import type { z } from "zod";
import { sourceCredentials } from "../../src/contract/models/source-credentials.ts";
import { createDirectoryBlobStore } from "../../src/storage/directory-blob-store.ts";
import { putObject } from "../../src/storage/s3/objects.ts";
import { createS3Client } from "../../src/storage/s3/s3-client.ts";
import { createModelSources } from "../../src/storage/sources/model-sources.ts";
import { fetchModelFiles } from "../../src/worker/fetch-model-files.ts";
import { commit, startHubStandIn } from "../storage/hub-stand-in.ts";
import { startS3Server } from "../storage/s3-server.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { startCuttingRelay } from "../support/cutting-relay.ts";
import {
  externalFiles,
  externalTensor,
  hashTestFile,
  writeExternalModel,
} from "../support/external-model.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

const names = ["net.onnx", ...externalFiles];
/** Two files of 4 MiB. */
const width = 1024;
const cutBetween = [400_000, 1_000_000] as const;
/** What a reader has not taken when its connection breaks. */
const lostPerCut = 128 * 1024;

async function makeModel(t: TestContext) {
  const folder = await mkdtemp(path.join(tmpdir(), "broken-off-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeExternalModel(folder, width);
  const files = Object.fromEntries(names.map((name) => [name, path.join(folder, name)]));
  const sizes = await Promise.all(Object.values(files).map((file) => stat(file)));
  return { folder, files, bytes: sizes.reduce((sum, { size }) => sum + size, 0) };
}

function fetchDefaults(t: TestContext) {
  return {
    limits: { maxModelBytes: 1e9, allowedRoots: [], allowPrivateAddresses: true },
    signal: t.signal,
    locateSource: () => assert.fail("The source needs no address"),
    onProgress: () => {},
  };
}

type Model = Awaited<ReturnType<typeof makeModel>>;

/** Fetches the model as a worker does, and compares its files with the original's. */
async function fetchWhole(
  t: TestContext,
  { source, credentials }: { source: string; credentials: z.input<typeof sourceCredentials> },
  { folder, files }: Model,
): Promise<void> {
  const sources = createModelSources(sourceCredentials.parse(credentials));
  t.after(() => sources[Symbol.asyncDispose]());
  const work = await mkdtemp(path.join(folder, "work-"));
  const fetched = await fetchModelFiles(
    { source, name: "net" },
    {
      blobs: await createDirectoryBlobStore(path.join(work, "store")),
      path: path.join(work, "model.onnx"),
      ...fetchDefaults(t),
      locateSource: (asked) => sources.locate("team", asked),
    },
  );
  assert.deepEqual(fetched.external.map((file) => file.path).toSorted(), [...externalFiles]);
  const own = { path: "net.onnx", sha256: fetched.sha256 };
  for (const { path: name, sha256 } of [own, ...fetched.external]) {
    assert.equal(sha256, await hashTestFile(files[name] ?? ""), name);
  }
  for (const name of externalFiles) {
    assert.equal(await hashTestFile(path.join(work, name)), await hashTestFile(files[name] ?? ""));
  }
}

function checkServed(
  t: TestContext,
  { counted }: Awaited<ReturnType<typeof startCuttingRelay>>,
  { bytes }: Model,
): void {
  t.diagnostic(`${counted.bytes} bytes of ${bytes} were sent, ${counted.cuts} connections cut`);
  assert.ok(counted.cuts >= 8);
  assert.ok(counted.bytes <= bytes + counted.cuts * lostPerCut);
}

test("a model of the Hub with external data that breaks off at random is not begun anew", async (t) => {
  const model = await makeModel(t);
  const relays: Awaited<ReturnType<typeof startCuttingRelay>>[] = [];
  const { endpoint } = await startHubStandIn(t, model.files, async (origin) => {
    const relay = await startCuttingRelay(t, origin, cutBetween);
    relays.push(relay);
    return relay.origin;
  });
  const source = `hf://acme/public@${commit}/net.onnx`;
  await fetchWhole(t, { source, credentials: { hf: [{ endpoint }] } }, model);
  const [relay] = relays;
  assert.ok(relay);
  checkServed(t, relay, model);
});

test(
  "a model of a bucket with external data that breaks off at random is not begun anew",
  { skip: s3Missing },
  async (t) => {
    const model = await makeModel(t);
    const { access } = await startS3Server(t);
    await using client = createS3Client(access);
    for (const [name, file] of Object.entries(model.files)) {
      await putObject(client, `nets/${name}`, { content: await readFile(file) });
    }
    const relay = await startCuttingRelay(t, access.endpoint, cutBetween);
    const { isPathStyle: pathStyle, ...rest } = access;
    const credentials = { s3: [{ ...rest, endpoint: relay.origin, pathStyle }] };
    const source = `s3://${access.bucket}/nets/net.onnx`;
    await fetchWhole(t, { source, credentials }, model);
    checkServed(t, relay, model);
  },
);

test("a manifest that lacks external data fails with the model's name for it, without its escapes", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "forged-"));
  t.after(() => rm(folder, { recursive: true }));
  const onnx = path.join(folder, "net.onnx");
  await writeTinyModel(onnx, {
    initializer: [externalTensor("w", 'a"\u001b[2J\n[publish] stored\u202e', 4)],
  });
  const blobs = await createDirectoryBlobStore(path.join(folder, "store"));
  const { sha256, bytes } = await blobs.write(createReadStream(onnx));
  const fetching = fetchModelFiles(
    { source: "upload:sha256:", sha256, name: "net", files: [{ path: "net.onnx", sha256, bytes }] },
    { ...fetchDefaults(t), blobs, path: path.join(folder, "work", "model.onnx") },
  );
  const name = JSON.stringify('a"\u001b[2J\n[publish] stored\ufffd');
  const message = `The manifest does not name ${name}, which the model refers to`;
  await assert.rejects(fetching, { code: "external_data_missing", message });
});

test("external data in many files keeps up one pace, not one a file", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "dripped-"));
  t.after(() => rm(folder, { recursive: true }));
  const onnx = path.join(folder, "net.onnx");
  const names = Array.from({ length: 20 }, (_, i) => `w${i}`);
  await writeTinyModel(onnx, { initializer: names.map((name) => externalTensor(name, name, 1)) });
  const content = await readFile(onnx);
  const slowServer = createServer(({ url }, response) => {
    if (url === "/net.onnx") response.end(content);
    else setTimeout(() => response.end("data"), 250);
  });
  const origin = await listenLocally(t, slowServer);
  const fetching = fetchModelFiles(
    { source: `${origin}/net.onnx`, name: "net" },
    {
      ...fetchDefaults(t),
      blobs: await createDirectoryBlobStore(path.join(folder, "store")),
      path: path.join(folder, "model.onnx"),
      slowest: { bytes: 1024 ** 2, seconds: 1 },
    },
  );
  await assert.rejects(fetching, { code: "model_source_slow" });
});
