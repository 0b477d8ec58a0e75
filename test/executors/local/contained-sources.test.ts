import assert from "node:assert/strict";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { cp, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream";
import { test, type TestContext } from "node:test";
import { parseByteRange } from "../../../src/server/http/blob-response.ts";
import { putObject } from "../../../src/storage/s3/objects.ts";
import { createS3Client } from "../../../src/storage/s3/s3-client.ts";
import { commit, hubToken, startHubStandIn } from "../../storage/hub-stand-in.ts";
import { startS3Server } from "../../storage/s3-server.ts";
import { s3Missing } from "../../support/cluster/cluster-missing.ts";
import { startCuttingRelay } from "../../support/cutting-relay.ts";
import { externalFiles, hashTestFile, writeExternalModel } from "../../support/external-model.ts";
import { findFreePort } from "../../support/find-free-port.ts";
import { listenLocally } from "../../support/listen-locally.ts";
import { writeFloatsNpz } from "../../support/npz.ts";
import { type RunningService, startRunningService } from "../../support/running-service.ts";
import { until } from "../../support/until.ts";
import { namespacesMissing } from "./namespaces-missing.ts";

const names = ["net.onnx", ...externalFiles];
/** Two files of 4 MiB. */
const width = 1024;
const cutBetween = [400_000, 1_000_000] as const;
const withPrivateHosts = { MOS_ALLOW_PRIVATE_ADDRESSES: "true" };

async function makeModel(t: TestContext) {
  const folder = await mkdtemp(path.join(tmpdir(), "contained-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeExternalModel(folder, width);
  return {
    folder,
    files: Object.fromEntries(names.map((name) => [name, path.join(folder, name)])),
  };
}

type Model = Awaited<ReturnType<typeof makeModel>>;

async function startWithCredentials(t: TestContext, { folder }: Model, credentials: object = {}) {
  const file = path.join(folder, "credentials.json");
  await writeFile(file, JSON.stringify(credentials));
  return startRunningService(t, {
    environment: { ...withPrivateHosts, MOS_SOURCE_CREDENTIALS_FILE: file },
  });
}

async function submit({ client }: RunningService, source: string, evaluation: object) {
  const { id } = await client.call("startCompression", {
    body: { model: { source }, target: "cpu", recipe: { evaluation } },
  });
  return id;
}

async function untilEnded({ client }: RunningService, id: string) {
  const lines: string[] = [];
  for await (const { text } of client.followLogs(id)) lines.push(text);
  return { lines, job: await client.call("getJob", { params: { id } }) };
}

/** Compresses the model in a contained worker, with data of the evaluation where it has some. */
async function compress(service: RunningService, source: string, model: Model, data?: string) {
  // Weights that are sines nearly cancel out.
  const evaluation = { data, samples: 2, latencyBudgetSeconds: 0, minCosine: 0 };
  const { job, lines } = await untilEnded(service, await submit(service, source, evaluation));
  assert.equal(job.status, "Completed", `${job.error?.message}\n${lines.join("\n")}`);
  for (const [name, file] of Object.entries(model.files)) {
    const sha256 = await hashTestFile(file);
    const start = name === "net.onnx" ? "[fetch] " : `[fetch] External data ${name}: `;
    assert.ok(
      lines.some((line) => line.startsWith(start) && line.endsWith(` SHA-256 ${sha256}`)),
      name,
    );
  }
  assert.ok((job.telemetry.stageSeconds?.fetch ?? 0) > 0);
  return job;
}

/** Sends files of a folder whole or from a byte on. */
function serveFiles({ folder }: Model): RequestListener {
  return ({ url = "", headers }, response) => {
    const file = path.join(folder, url);
    void stat(file).then(
      ({ size }) => {
        const range = headers.range === undefined ? undefined : parseByteRange(headers.range, size);
        const { start = 0, end = size - 1 } = range ?? {};
        response.writeHead(range ? 206 : 200, {
          etag: '"1"',
          "content-length": end - start + 1,
          ...(range && { "content-range": `bytes ${start}-${end}/${size}` }),
        });
        pipeline(createReadStream(file, { start, end }), response, () => {});
      },
      () => response.writeHead(404).end(),
    );
  };
}

const options = { skip: namespacesMissing };

test(
  "a contained worker reads its model and data from a host that breaks off",
  options,
  async (t) => {
    const model = await makeModel(t);
    const origin = await listenLocally(t, createServer(serveFiles(model)));
    const relay = await startCuttingRelay(t, origin, cutBetween);
    const values = Array.from({ length: 2 * width }, (_, i) => Math.cos(i));
    await writeFloatsNpz(model.folder, "x", { shape: [2, 1, width], values });
    const service = await startWithCredentials(t, model);
    const source = `${relay.origin}/net.onnx`;
    const job = await compress(service, source, model, `${relay.origin}/x.npz`);
    assert.equal(job.telemetry.accuracy?.data, "caller");
    assert.ok(relay.counted.cuts >= 8);
  },
);

test("a contained worker reads its model from a Hub that breaks off", options, async (t) => {
  const model = await makeModel(t);
  const relays: Awaited<ReturnType<typeof startCuttingRelay>>[] = [];
  const hub = await startHubStandIn(t, model.files, async (origin) => {
    relays.push(await startCuttingRelay(t, origin, cutBetween));
    return relays[0]?.origin ?? "";
  });
  const credentials = { hf: [{ endpoint: hub.endpoint, token: hubToken }] };
  const service = await startWithCredentials(t, model, credentials);
  await compress(service, `hf://acme/private@${commit}/net.onnx`, model);
  assert.ok((relays[0]?.counted.cuts ?? 0) >= 8);
  assert.equal(hub.leaks, 0);
});

test(
  "a contained worker reads its model from a bucket that breaks off",
  { skip: namespacesMissing || s3Missing },
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
    const service = await startWithCredentials(t, model, credentials);
    await compress(service, `s3://${access.bucket}/nets/net.onnx`, model);
    assert.ok(relay.counted.cuts >= 8);
  },
);

test(
  "a contained worker reads weights of a folder by ranges, from a host that breaks off",
  options,
  async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), "contained-"));
    t.after(() => rm(folder, { recursive: true }));
    const checkpoint = new URL("../../engine/language/checkpoints/llama3", import.meta.url);
    await cp(checkpoint, path.join(folder, "llama3"), { recursive: true });
    const tokenizer = { version: "1.0", model: { type: "WordPiece", vocab: { t: 0 } } };
    await writeFile(path.join(folder, "llama3/tokenizer.json"), JSON.stringify(tokenizer));
    const origin = await listenLocally(t, createServer(serveFiles({ folder, files: {} })));
    const relay = await startCuttingRelay(t, origin, [8_000, 20_000]);
    const service = await startWithCredentials(t, { folder, files: {} });
    const recipe = {
      scheme: "int8-weight",
      minElements: 0,
      evaluation: { level: "weights" },
    } as const;
    const { id } = await service.client.call("startCompression", {
      body: { model: { source: `${relay.origin}/llama3/` }, target: "cpu", recipe },
    });
    const { job, lines } = await untilEnded(service, id);
    assert.equal(job.status, "Completed", `${job.error?.message}\n${lines.join("\n")}`);
    assert.ok(job.artifacts.some(({ name }) => name === "genai_config.json"));
    const { size } = await stat(path.join(folder, "llama3/model.safetensors"));
    assert.ok(relay.counted.cuts >= Math.floor(size / 20_000));
  },
);

test("what is wrong with a source is said as by a worker with a network", options, async (t) => {
  const model = await makeModel(t);
  const origin = await listenLocally(
    t,
    createServer(({ url }, response) => {
      if (url === "/forbidden.onnx") response.writeHead(403).end();
      else if (url === "/away.onnx")
        response.writeHead(302, { location: "file:///etc/passwd" }).end();
      else response.writeHead(404).end();
    }),
  );
  const closed = `http://127.0.0.1:${await findFreePort("127.0.0.1")}`;
  const service = await startWithCredentials(t, model);
  const cases = [
    [
      `${origin}/absent.onnx?key=secret`,
      "model_not_found",
      `"${origin}/absent.onnx" does not exist: the host answered 404`,
    ],
    [
      `${origin}/forbidden.onnx`,
      "model_fetch_failed",
      `Cannot fetch "${origin}/forbidden.onnx": the host answered 403`,
    ],
    [
      `${closed}/net.onnx`,
      "model_fetch_failed",
      `Cannot fetch "${closed}/net.onnx": connect ECONNREFUSED ${closed.slice(7)}`,
    ],
    [`${origin}/away.onnx`, "model_source_refused", undefined],
  ] as const;
  for (const [source, code, message] of cases) {
    const { job } = await untilEnded(service, await submit(service, source, { level: "none" }));
    assert.equal(job.error?.code, code, source);
    if (message !== undefined) assert.equal(job.error.message, message);
  }
});

test("a contained worker gets no file of a private address", options, async (t) => {
  let connections = 0;
  const server = createServer().on("connection", () => connections++);
  const origin = await listenLocally(t, server);
  const service = await startRunningService(t);
  const secure = origin.replace("http://127.0.0.1", "https://localhost");
  const id = await submit(service, `${secure}/net.onnx`, { level: "none" });
  const { job } = await untilEnded(service, id);
  assert.equal(job.error?.code, "model_source_refused");
  assert.equal(connections, 0);
});

test("a cancellation in the middle of a download stops it", options, async (t) => {
  const model = await makeModel(t);
  // All of it would take a quarter of an hour.
  const drip = createServer((_, response) => {
    response.writeHead(200, { "content-length": 1e9 });
    const timer = setInterval(() => response.write(Buffer.alloc(10_000)), 10);
    response.once("close", () => clearInterval(timer));
  });
  const requested = once(drip, "request");
  const origin = await listenLocally(t, drip);
  const service = await startWithCredentials(t, model);
  const id = await submit(service, `${origin}/net.onnx`, { level: "none" });
  const [, response] = await requested;
  const closed = once(response, "close");
  await until("the download is under way", async () => {
    const { telemetry } = await service.client.call("getJob", { params: { id } });
    return telemetry.progress.message?.startsWith("Fetching: ");
  });
  await service.client.call("cancelJob", { params: { id } });
  const { job } = await untilEnded(service, id);
  await closed;
  assert.equal(job.status, "Cancelled");
});
