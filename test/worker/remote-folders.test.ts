import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { PartialRecipe } from "../../src/contract/jobs/recipe.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { at } from "../../src/engine/onnx/at.ts";
import { sourceCredentials } from "../../src/contract/models/source-credentials.ts";
import { putObject } from "../../src/storage/s3/objects.ts";
import { createS3Client } from "../../src/storage/s3/s3-client.ts";
import { createModelSources } from "../../src/storage/sources/model-sources.ts";
import { commit, startHubStandIn } from "../storage/hub-stand-in.ts";
import { startS3Server } from "../storage/s3-server.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { s3Missing } from "../support/cluster/cluster-missing.ts";
import { type PodService, startPodService } from "./pod-service.ts";
import { runSteps, waitForPodEnd } from "./pod-steps.ts";

const checkpoint = fileURLToPath(
  new URL("../engine/language/checkpoints/llama3/", import.meta.url),
);
const shardName = "model-00001-of-00001.safetensors";
const indexName = "model.safetensors.index.json";
const hubFolder = `hf://acme/public@${commit}/`;
const recipe: PartialRecipe = {
  scheme: "int4-weight",
  granularity: "block",
  blockSize: 32,
  operators: "contrib",
  minElements: 0,
  evaluation: { level: "none" },
};

/** A repository's files: a configuration, a tokenizer, and one shard with its index. */
async function readRepository() {
  const weights = await readFile(path.join(checkpoint, "model.safetensors"));
  const header = weights.subarray(8, 8 + Number(weights.readBigUInt64LE())).toString();
  const tensors = Object.keys(JSON.parse(header)).filter((name) => name !== "__metadata__");
  const weightMap = Object.fromEntries(tensors.map((name) => [name, shardName]));
  const vocab = Object.fromEntries(Array.from({ length: 64 }, (_, id) => [`t${id}`, id]));
  const model = { type: "WordPiece", vocab, unk_token: "t0" };
  return {
    "config.json": await readFile(path.join(checkpoint, "config.json")),
    "tokenizer.json": Buffer.from(JSON.stringify({ version: "1.0", model })),
    [indexName]: Buffer.from(JSON.stringify({ weight_map: weightMap })),
    [shardName]: weights,
  };
}

async function runJob(service: PodService, source: string, overrides: object = {}) {
  const target = at(builtinTargets, 1);
  const id = await service.createJob({ source, name: "net" }, recipe, { target, ...overrides });
  await waitForPodEnd(await service.startPod(id));
  return service.find(id);
}

/** Hashes of the files that a runtime loads. */
async function convert(service: PodService, source: string) {
  const { id, status, error } = await runJob(service, source);
  assert.equal(status, "Completed", JSON.stringify(error));
  return listLoadedFiles(service, id);
}

async function listLoadedFiles(service: PodService, id: string) {
  const { artifacts } = await service.find(id);
  const loaded = artifacts.filter(({ kind }) =>
    ["model", "weights", "configuration"].includes(kind),
  );
  return loaded.map(({ name, sha256 }) => [name, sha256]);
}

async function convertLocally(service: PodService, files: Record<string, Buffer>) {
  const folder = path.join(service.folder, "checkpoint");
  await mkdir(folder);
  for (const [name, content] of Object.entries(files)) {
    await writeFile(path.join(folder, name), content);
  }
  return convert(service, `${pathToFileURL(folder).href}/`);
}

test("a branch of a repository becomes what its files on a disk become, all of one commit", async (t) => {
  const files = await readRepository();
  const { endpoint, requests } = await startHubStandIn(t, files);
  const credentials = { hf: [{ endpoint }] };
  const service = await startPodService(t, { credentials });
  await using sources = createModelSources(sourceCredentials.parse(credentials));
  const pinned = await sources.pin("default", "hf://acme/public@main");
  assert.equal(pinned, hubFolder);
  requests.length = 0;
  assert.deepEqual(await convert(service, pinned), await convertLocally(service, files));
  const asked = requests.filter((request) => !request.startsWith("storage"));
  for (const name of Object.keys(files)) {
    assert.ok(asked.includes(`GET /acme/public/resolve/${commit}/${name}`), name);
  }
  const moving = asked.filter((request) => !request.includes(`/resolve/${commit}/`));
  assert.deepEqual(moving, []);
});

test(
  "a folder of a bucket becomes what its files on a disk become",
  { skip: s3Missing },
  async (t) => {
    const files = await readRepository();
    const { access } = await startS3Server(t);
    await using client = createS3Client(access);
    for (const [name, content] of Object.entries(files)) {
      await putObject(client, `nets/llama/${name}`, { content });
    }
    const { isPathStyle: pathStyle, ...rest } = access;
    const service = await startPodService(t, { credentials: { s3: [{ ...rest, pathStyle }] } });
    const source = `s3://${access.bucket}/nets/llama/`;
    assert.deepEqual(await convert(service, source), await convertLocally(service, files));
  },
);

test("a shard that a repository lacks is named, and nothing is published", async (t) => {
  const { [shardName]: _, ...files } = await readRepository();
  const { endpoint } = await startHubStandIn(t, files);
  const service = await startPodService(t, { credentials: { hf: [{ endpoint }] } });
  const { status, error, artifacts } = await runJob(service, hubFolder);
  assert.equal(status, "Failed");
  assert.equal(error?.code, "model_not_found");
  assert.ok(error.message.includes(shardName), error.message);
  assert.deepEqual(artifacts, []);
});

test("a shard that ends early is refused with its tensor, and nothing is published", async (t) => {
  const files = await readRepository();
  const cut = { ...files, [shardName]: files[shardName].subarray(0, -4) };
  const { endpoint } = await startHubStandIn(t, cut);
  const service = await startPodService(t, { credentials: { hf: [{ endpoint }] } });
  const { status, error, artifacts } = await runJob(service, hubFolder);
  assert.equal(status, "Failed");
  assert.equal(error?.code, "model_truncated");
  assert.match(
    error.message,
    /^model-00001-of-00001\.safetensors .*tensor "[^"]+": data_offsets: /,
  );
  assert.deepEqual(artifacts, []);
});

/** First and last byte of each request for a part of a file. */
function listRanges(requests: readonly string[]): [first: number, last: number][] {
  return requests.flatMap((request): [number, number][] => {
    const [, first, last] = /^storage GET bytes=(\d+)-(\d+)$/.exec(request) ?? [];
    return first === undefined ? [] : [[Number(first), Number(last)]];
  });
}

test("weights are read by ranges, each byte once, and a dry run reads their header only", async (t) => {
  const files = await readRepository();
  const { endpoint, requests } = await startHubStandIn(t, files);
  const service = await startPodService(t, { credentials: { hf: [{ endpoint }] } });
  const dry = await runJob(service, hubFolder, { dryRun: true });
  assert.equal(dry.status, "Completed", JSON.stringify(dry.error));
  const { [shardName]: weights } = files;
  const headerEnd = 8 + Number(weights.readBigUInt64LE());
  const headRanges = [
    [0, 7],
    [8, headerEnd - 1],
  ];
  assert.deepEqual(listRanges(requests), headRanges);
  requests.length = 0;
  const { id, status, error, telemetry } = await runJob(service, hubFolder.replace(/\/$/, ""));
  assert.equal(status, "Completed", JSON.stringify(error));
  const log = await service.readLogTexts(id);
  assert.ok(!log.some((line) => line.includes("not compared")), log.join("\n"));
  assert.equal(telemetry.size?.resultBytes, dry.telemetry.size?.resultBytes);
  const ranges = listRanges(requests);
  assert.deepEqual(ranges.slice(0, 2), headRanges);
  assertReadOnce(ranges.slice(2), headerEnd, weights.length);
});

function assertReadOnce(ranges: readonly [number, number][], start: number, end: number): void {
  let position = start;
  for (const [first, last] of ranges.toSorted(([a], [b]) => a - b)) {
    assert.equal(first, position);
    position = last + 1;
  }
  assert.equal(position, end);
}

test("pods share a repository: the bytes of one pod, and each byte of the source once in all", async (t) => {
  const files = await readRepository();
  const { endpoint, requests } = await startHubStandIn(t, files);
  const service = await startPodService(t, { credentials: { hf: [{ endpoint }] } });
  const model = { source: hubFolder, name: "net" };
  const target = at(builtinTargets, 1);
  const id = await service.createJob(model, { ...recipe, parallelism: 3 }, { target });
  await runSteps(service, id, 3);
  const ranges = listRanges(requests);
  const { [shardName]: weights } = files;
  const headerEnd = 8 + Number(weights.readBigUInt64LE());
  assertReadOnce(ranges.slice(2), headerEnd, weights.length);
  const { status, error } = await service.find(id);
  assert.equal(status, "Completed", JSON.stringify(error));
  assert.deepEqual(await listLoadedFiles(service, id), await convert(service, hubFolder));
});

test("pods share a folder of their machine", async (t) => {
  const service = await startPodService(t);
  const expected = await convertLocally(service, await readRepository());
  const source = `${pathToFileURL(path.join(service.folder, "checkpoint")).href}/`;
  const target = at(builtinTargets, 1);
  const shared = { ...recipe, parallelism: 2 };
  const id = await service.createJob({ source, name: "net" }, shared, { target });
  await runSteps(service, id, 2);
  assert.deepEqual(await listLoadedFiles(service, id), expected);
});

test("pods that share a repository run the original of what they have read: each byte once in all", async (t) => {
  const files = await readRepository();
  const { endpoint, requests } = await startHubStandIn(t, files);
  const service = await startPodService(t, { credentials: { hf: [{ endpoint }] } });
  const target = at(builtinTargets, 1);
  const evaluation = { samples: 1, latencyBudgetSeconds: 0 } as const;
  const shared = { ...recipe, evaluation, parallelism: 4 };
  const model = { source: hubFolder, name: "net" };
  const id = await service.createJob(model, shared, { target });
  await runSteps(service, id, 4);
  const { status, error, telemetry, artifacts } = await service.find(id);
  assert.equal(status, "Completed", JSON.stringify(error));
  assert.equal(telemetry.accuracy?.level, "outputs");
  const { [shardName]: weights } = files;
  const headerEnd = 8 + Number(weights.readBigUInt64LE());
  const ranges = listRanges(requests);
  assertReadOnce(ranges.slice(2), headerEnd, weights.length);
  const stored = artifacts.reduce((sum, { bytes }) => sum + bytes, 0);
  assert.equal(await service.records.usage.storedBytes("default"), stored);
  assert.deepEqual(await listLoadedFiles(service, id), await convertLocally(service, files));
});

type Answer = (response: ServerResponse, content: Buffer, headers: IncomingHttpHeaders) => void;

/** A host of a folder that answers for the shard as told, for other files as all hosts do. */
async function startHost(t: TestContext, answerShard: Answer): Promise<string> {
  const files: Record<string, Buffer> = await readRepository();
  const server = createServer(({ url = "", headers }, response) => {
    const name = url.replace("/llama/", "");
    const content = files[name];
    // As buckets do whose files may not be listed.
    if (content === undefined) response.writeHead(403).end();
    else if (name === shardName) answerShard(response, content, headers);
    else response.writeHead(200).end(content);
  });
  return `${await listenLocally(t, server)}/llama/`;
}

/** Answers with a part, as hosts do. */
function sendPart(etag: string): Answer {
  return (response, content, { range = "" }) => {
    const [, first = "", last = ""] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? [];
    const part = content.subarray(Number(first), Number(last) + 1);
    const contentRange = `bytes ${first}-${Number(first) + part.length - 1}/${content.length}`;
    response.writeHead(206, { etag, "content-range": contentRange }).end(part);
  };
}

async function failWith(t: TestContext, answerShard: Answer) {
  const service = await startPodService(t);
  const source = await startHost(t, answerShard);
  const { status, error, artifacts } = await runJob(service, source);
  assert.equal(status, "Failed");
  assert.deepEqual(artifacts, []);
  assert.equal(error?.code, "model_fetch_failed");
  return error.message.replace(source, "");
}

test("a shard that changes while it is read is refused with its tensor, and nothing is published", async (t) => {
  let requests = 0;
  const message = await failWith(t, (...answer) => {
    requests += 1;
    sendPart(requests < 3 ? '"1"' : '"2"')(...answer);
  });
  assert.match(message, /^model-00001-of-00001\.safetensors: tensor "[^"]+": data_offsets: /);
  assert.match(message, /the file changed while it was read: version "1" is now "2"$/);
});

test("a host that ignores ranges is refused before weights are read", async (t) => {
  let sent = 0;
  const message = await failWith(t, (response, content) => {
    sent += 1;
    response.writeHead(200, { etag: '"1"' }).end(content);
  });
  const problem = "the host ignores ranges: it sent all for bytes 0-7";
  assert.equal(message, `Cannot fetch "${shardName}": ${problem}`);
  assert.equal(sent, 1);
});

test("a host that ends weights early is refused with the tensor", async (t) => {
  let requests = 0;
  const message = await failWith(t, (response, content, headers) => {
    requests += 1;
    if (requests < 3) return sendPart('"1"')(response, content, headers);
    const [, first = ""] = /^bytes=(\d+)-/.exec(headers.range ?? "") ?? [];
    const contentRange = `bytes ${first}-${content.length - 1}/${content.length}`;
    const rest = content.subarray(Number(first), content.length - 100);
    response.writeHead(206, { etag: '"1"', "content-range": contentRange }).end(rest);
  });
  const position = /the answer ended at byte (\d+) of (\d+)$/.exec(message);
  assert.match(message, /^model-00001-of-00001\.safetensors: tensor "[^"]+": data_offsets: /);
  assert.equal(Number(position?.[2]) - Number(position?.[1]), 100);
});
