import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { openJobSocket } from "../../../src/executors/local/job-socket.ts";

const options = { skip: process.platform === "linux" ? false : "sockets of jobs are Linux's" };
const jobId = "job-01h455vb4pex5vsknk084sn02q";
const own = `/worker/v1/jobs/${jobId}`;

async function open(t: TestContext) {
  const base = await mkdtemp(path.join(tmpdir(), "job-socket-"));
  t.after(() => rm(base, { recursive: true }));
  // Beyond what the path of a socket may have.
  const folder = path.join(base, "f".repeat(200));
  await mkdir(folder);
  const link = path.join(base, "link");
  await symlink(folder, link);
  const answered: string[] = [];
  const socket = await openJobSocket(folder, {
    jobId,
    answer(incoming, outgoing) {
      answered.push(`${incoming.method} ${incoming.url}`);
      outgoing.end("answered");
    },
  });
  const ask = async (method: string, asked: string) => {
    const sent = request({
      socketPath: path.join(link, "service.sock"),
      method,
      path: asked,
    }).end();
    const [answer] = await once(sent, "response");
    await text(answer);
    return answer.statusCode;
  };
  return { folder, socket, ask, answered };
}

test(
  "a job's socket answers the worker protocol of its job and nothing else",
  options,
  async (t) => {
    const { folder, socket, ask, answered } = await open(t);
    const sha256 = "a".repeat(64);
    const taken = [
      `GET ${own}`,
      `POST ${own}/events`,
      `POST ${own}/source`,
      `PUT ${own}/blobs/${sha256}`,
      `POST ${own}/blobs/${sha256}/upload`,
    ];
    for (const each of taken) {
      const [method = "", asked = ""] = each.split(" ");
      assert.equal(await ask(method, asked), 200, each);
    }
    for (const asked of [
      "/healthz",
      "/v1/jobs",
      "http://service/v1/jobs",
      `${own}/sources`,
      `${own}?x=1`,
      `${own}/`,
      `${own}0`,
      `${own}/../${jobId.replace("01h", "02h")}`,
      `${own}/events/../../../../../v1/jobs`,
      `${own}/%2e%2e/events`,
      `${own}\\..\\events`,
      `${own}//events`,
    ]) {
      assert.equal(await ask("GET", asked), 404, asked);
    }
    assert.deepEqual(answered, taken);
    await socket[Symbol.asyncDispose]();
    assert.deepEqual(await readdir(folder), []);
  },
);

test("a job's socket sends no source after the worker has read them", options, async (t) => {
  const { socket, ask } = await open(t);
  await using _socket = socket;
  assert.equal(await ask("POST", `${own}/source`), 200);
  assert.equal(await ask("DELETE", `${own}/source`), 204);
  assert.equal(await ask("POST", `${own}/source`), 404);
  assert.equal(await ask("POST", `${own}/events`), 200);
});
