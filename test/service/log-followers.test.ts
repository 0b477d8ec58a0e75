import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import test from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { limits } from "../../src/contract/limits.ts";
import { startHttpServer } from "../../src/service/http-server/start-http-server.ts";
import { until } from "../support/until.ts";
import { beginTestWorker, logEvent, makeTestApp, startJob } from "../server/test-app.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** Bytes of buffers that something still refers to. */
function countBufferBytes(): number {
  collectGarbage();
  // The first one frees buffers in the background, which the next one waits for.
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

test("of each follower of a log who reads nothing, 256 KiB are in memory", async (t) => {
  const app = await makeTestApp(t);
  const { id } = await startJob(app);
  const worker = await beginTestWorker(app, id);
  // More than the buffers of a connection hold.
  const line = logEvent("x".repeat(65_000));
  for (let i = 0; i < 133; i++) await worker.report(line, line, line);
  await using server = await startHttpServer((request) => app.app.fetch(request), {
    host: "127.0.0.1",
    port: 0,
  });
  const readPage = t.mock.method(app.records.logs, "readPage");
  const before = countBufferBytes();
  const { port, host } = new URL(server.url);
  const followers = 40;
  const sockets = Array.from({ length: followers }, () => connect(Number(port), "127.0.0.1"));
  for (const socket of sockets) {
    socket.on("error", () => {}).pause();
    await once(socket, "connect");
    socket.write(
      `GET /v1/jobs/${id}/logs HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${app.admin}\r\n\r\n`,
    );
  }
  await until("each follower was read for", () => readPage.mock.callCount() >= followers);
  for (let calls = -1; calls !== readPage.mock.callCount();) {
    calls = readPage.mock.callCount();
    await delay(500);
  }
  const each = (countBufferBytes() - before) / followers;
  assert.ok(
    each > limits.logPageBytes / 2 && each <= 2 * limits.logPageBytes,
    `${each} bytes each`,
  );
});
