import assert from "node:assert/strict";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { limits } from "../../src/contract/limits.ts";
import { startHttpServer } from "../../src/service/http-server/start-http-server.ts";
import { tenantToken } from "./tenant-tokens.ts";
import { beginTestWorker, makeTestApp, problemIn, startJob, type TestApp } from "./test-app.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

interface Sender {
  readonly path: string;
  readonly token?: string;
  readonly from?: string;
}

/** A request whose body goes on as the test says. */
function beginRequest({ app }: TestApp, { path, token, from = "192.0.2.1" }: Sender) {
  let sender: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({ start: (begun) => void (sender = begun) });
  const headers = new Headers({ "content-type": "application/json" });
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  const init = { method: "POST", headers, body, duplex: "half" } as const;
  const answer = app.request(path, init, { incoming: { socket: { remoteAddress: from } } });
  return {
    answer: Promise.resolve(answer),
    send: (piece: Uint8Array) => sender?.enqueue(piece),
    finish: () => sender?.close(),
  };
}

/** Begins one request more than there is memory for, and ends the others in the end. */
async function fillMemory(
  app: TestApp,
  sender: Sender & { readonly bytes: number; readonly memory: number },
  meanwhile: () => Promise<void>,
): Promise<void> {
  const spaces = new Uint8Array(sender.bytes).fill(0x20);
  const count = Math.floor(sender.memory / sender.bytes) + 1;
  const requests = Array.from({ length: count }, () => beginRequest(app, sender));
  for (const { send } of requests) send(spaces);
  const { answer: refusal, refused } = await Promise.race(
    requests.map(async (request) => ({ answer: await request.answer, refused: request })),
  );
  await isRefusedForNow(refusal);
  const unfinished = requests.filter((request) => request !== refused);
  await meanwhile();
  for (const { finish } of unfinished) finish();
  for (const { answer } of unfinished) {
    assert.equal((await problemIn(await answer)).code, "malformed_request");
  }
}

async function isRefusedForNow(answer: Response): Promise<void> {
  assert.equal(answer.headers.get("retry-after"), "1");
  const { code, status, detail } = await problemIn(answer);
  assert.deepEqual([code, status], ["unavailable", 503]);
  assert.match(detail, /bodies of other requests and answers under way leave no memory/);
}

test("bodies of a project that are read at once are bounded together", async (t) => {
  const app = await makeTestApp(t);
  const { token } = await tenantToken(app, { project: "other", scopes: ["admin"] });
  const batch = { models: [{ source: "https://models.example/a.onnx" }], targets: ["cpu"] };
  const sizes = { bytes: limits.jsonBodyBytes, memory: limits.bodyMemory.projects.perCaller };
  await fillMemory(app, { path: "/v1/batches", token: app.admin, ...sizes }, async () => {
    await isRefusedForNow(await app.ask("POST /v1/batches", { body: batch }));
    assert.equal((await app.ask("POST /v1/batches", { token, body: batch })).status, 202);
    assert.equal((await app.ask("GET /v1/jobs")).status, 200);
  });
  assert.equal((await app.ask("POST /v1/batches", { body: batch })).status, 202);
});

test("bodies of an address without a token are bounded together", async (t) => {
  const app = await makeTestApp(t);
  const path = "/v1/tokens/exchange";
  const sizes = { bytes: 20_480, memory: limits.bodyMemory.strangers.perCaller };
  await fillMemory(app, { path, ...sizes }, async () => {
    const other = beginRequest(app, { path, from: "192.0.2.2" });
    other.send(Buffer.from("{}"));
    other.finish();
    assert.equal((await problemIn(await other.answer)).code, "validation_failed");
  });
});

test("events that a worker sends at once are bounded together", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const { secret: token } = await beginTestWorker(app, id);
  const path = `/worker/v1/jobs/${id}/events`;
  const ask = () => app.ask(`POST ${path}`, { token, body: { events: [] } });
  const sizes = { bytes: limits.workerBodyBytes, memory: limits.bodyMemory.workers.perCaller };
  await fillMemory(app, { path, token, ...sizes }, async () => isRefusedForNow(await ask()));
  assert.equal((await ask()).status, 200);
});

test("a body in pieces of one byte takes no more memory than another", async (t) => {
  const app = await makeTestApp(t);
  const request = beginRequest(app, { path: "/v1/batches", token: app.admin });
  const sendMany = async (times: number) => {
    const space = Buffer.from(" ");
    for (let i = 0; i < times; i++) {
      for (let piece = 0; piece < 1000; piece++) request.send(space.subarray());
      await delay(1);
    }
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = await sendMany(50);
  const bytes = (await sendMany(200)) - before;
  // Pieces that are kept take some 100 bytes each, and garbage of others 3 MB.
  assert.ok(bytes < 6_000_000, `${bytes} bytes for 200,000`);
  request.finish();
  await problemIn(await request.answer);
});

test("answers that a project does not take are bounded together", async (t) => {
  const app = await makeTestApp(t);
  const connections: ServerResponse[] = [];
  const read = () => {
    const outgoing = new ServerResponse(new IncomingMessage(new Socket()));
    connections.push(outgoing);
    const headers = { authorization: `Bearer ${app.admin}` };
    return app.app.request("/v1/openapi.json", { headers }, { outgoing });
  };
  let last = await read();
  const bytes = (await last.clone().arrayBuffer()).byteLength;
  while (last.status === 200) last = await read();
  await isRefusedForNow(last);
  const fitting = Math.floor(limits.bodyMemory.projects.perCaller / bytes);
  assert.ok(Math.abs(connections.length - fitting) <= 2, `${connections.length} of ${fitting}`);
  connections[0]?.destroy();
  await new Promise(setImmediate);
  assert.equal((await read()).status, 200);
});

test("an answer that is sent holds no memory any more", async (t) => {
  const app = await makeTestApp(t);
  await using server = await startHttpServer((...request) => app.app.fetch(...request), {
    host: "127.0.0.1",
    port: 0,
  });
  const headers = { authorization: `Bearer ${app.admin}` };
  const ask = (method: string) => fetch(`${server.url}/v1/openapi.json`, { method, headers });
  const { byteLength } = await (await ask("GET")).arrayBuffer();
  const { perCaller } = limits.bodyMemory.projects;
  for (let sent = 0; sent <= perCaller; sent += byteLength) {
    assert.equal((await ask("HEAD")).status, 200);
  }
});
