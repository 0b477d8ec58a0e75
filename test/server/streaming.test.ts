import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir, stat, watch } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createServer, type Server } from "node:http";
import test, { type TestContext } from "node:test";
import { getRequestListener } from "@hono/node-server";
import { listen } from "../../src/service/http-server/listen.ts";
import { logEvent, makeTestApp, startJob, beginTestWorker } from "./test-app.ts";
import { until } from "../support/until.ts";

/** The app on a socket. */
async function listeningApp(t: TestContext, options: Parameters<typeof makeTestApp>[1] = {}) {
  const app = await makeTestApp(t, options);
  const listener = getRequestListener(app.app.fetch);
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  const url = await listen(server, { host: "127.0.0.1", port: 0 });
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  return { ...app, server, url, token: await app.tokenFor("admin") };
}

test("lines reach the reader while the job runs", async (t) => {
  const app = await listeningApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" });
  const headers = { authorization: `Bearer ${app.token}`, accept: "text/event-stream" };
  const answer = await fetch(`${app.url}/v1/jobs/${id}/logs`, { headers });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (const [i, text] of ["one", "two"].entries()) {
    await worker.report(logEvent(text));
    assert.match(
      (await reader?.read())?.value ?? "",
      new RegExp(`^id: ${i + 1}\n.*"text":"${text}"`, "s"),
    );
  }
  await reader?.cancel();
});

test("a reader that goes away costs nothing more", async (t) => {
  const app = await listeningApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  await worker.report({ type: "status", status: "Sharding" }, logEvent("one"));
  const [answer, socket] = await Promise.all([
    fetch(`${app.url}/v1/jobs/${id}/logs`, { headers: { authorization: `Bearer ${app.token}` } }),
    nextSocket(app.server),
  ]);
  const reader = answer.body?.getReader();
  await reader?.read();
  await Promise.all([once(socket, "close"), reader?.cancel()]);
  await new Promise(setImmediate);
  const read = t.mock.method(app.records.logs, "readPage");
  await worker.report(logEvent("two"));
  await new Promise(setImmediate);
  assert.equal(read.mock.callCount(), 0);
});

test("a caller that goes away is not waited for", async (t) => {
  const app = await listeningApp(t);
  const body = JSON.stringify({
    model: { source: "https://models.example/m.onnx" },
    target: "cpu",
  });
  const socket = nextSocket(app.server);
  const caller = new AbortController();
  const headers = {
    authorization: `Bearer ${app.token}`,
    "content-type": "application/json",
    prefer: "wait=60",
  };
  const call = fetch(`${app.url}/v1/quantize`, {
    method: "POST",
    headers,
    body,
    signal: caller.signal,
  });
  const closed = once(await socket, "close");
  await until("the job is submitted", () => app.submitted.length > 0);
  caller.abort();
  await assert.rejects(call, { name: "AbortError" });
  await closed;
  await new Promise(setImmediate);
  const find = t.mock.method(app.records.jobs, "find");
  await app.records.jobs.cancel("default", app.submitted[0] ?? "");
  await new Promise(setImmediate);
  assert.equal(find.mock.callCount(), 0);
});

test("an upload that is too large is answered without being read", async (t) => {
  const app = await listeningApp(t);
  const answer = await fetch(`${app.url}/v1/models/${"0".repeat(64)}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${app.token}` },
    body: Buffer.alloc(1 << 20),
  });
  assert.equal(answer.status, 413);
});

test("an upload that is cut off goes on where it stopped", async (t) => {
  const app = await listeningApp(t, { keepsFolder: true });
  const incoming = join(app.directory, "storage", "incoming");
  const [first, rest] = [Buffer.from("the first bytes"), Buffer.from(", and the others")];
  const sha256 = createHash("sha256").update(first).update(rest).digest("hex");
  const size = first.length + rest.length;
  const changes = watch(incoming, { signal: t.signal });
  const socket = connect(Number(new URL(app.url).port), "127.0.0.1");
  const path = `/v1/models/${sha256}`;
  const head = [
    "Host: service",
    `Authorization: Bearer ${app.token}`,
    `Content-Length: ${size}`,
  ].join("\r\n");
  socket.write(`PUT ${path} HTTP/1.1\r\n${head}\r\n\r\n${first.toString()}`);
  for await (const _ of changes) {
    const [file = ""] = await readdir(incoming);
    if (file !== "" && (await stat(join(incoming, file))).size === first.length) break;
  }
  socket.destroy();
  const headers = { authorization: `Bearer ${app.token}` };
  const asked = await fetch(`${app.url}${path}`, { method: "HEAD", headers });
  assert.deepEqual([asked.status, asked.headers.get("upload-offset")], [404, String(first.length)]);
  const range = `bytes ${first.length}-${size - 1}/${size}`;
  const answer = await fetch(`${app.url}${path}`, {
    method: "PUT",
    headers: { ...headers, "content-range": range },
    body: rest,
  });
  assert.equal(answer.status, 201);
  assert.deepEqual(await app.blobs.find(sha256), { bytes: size });
  assert.deepEqual(await readdir(incoming), []);
  assert.deepEqual(
    app.logged.filter((line) => line.startsWith("error")),
    [],
  );
});

async function nextSocket(server: Server): Promise<Socket> {
  const [socket] = await once(server, "connection");
  return socket;
}
