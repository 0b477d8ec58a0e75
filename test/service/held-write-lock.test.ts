import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import test, { type TestContext } from "node:test";
import { problem } from "../../src/contract/errors.ts";
import { startRunningService } from "../support/running-service.ts";

/** Between rounds of reads. */
const pauseMs = 50;

const holder = `
  const { DatabaseSync } = require("node:sqlite");
  const database = new DatabaseSync(process.argv[1], { timeout: 5000 });
  database.exec("begin immediate");
  process.stdout.write("held");
  process.stdin.resume().once("end", () => database.exec("rollback"));
`;

/** Another process takes the write lock of a database; gives a function that ends it. */
async function holdWriteLock(t: TestContext, database: string): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, ["-e", holder, database], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill());
  await once(child.stdout, "data");
  return async () => {
    child.stdin.end();
    await once(child, "exit");
  };
}

test("while another process holds the write lock, the service reads, and its writes wait a bounded time", async (t) => {
  const { baseUrl, token, directory } = await startRunningService(t);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({
    models: [{ source: "https://models.example/m.onnx" }],
    targets: ["cpu"],
    dryRun: true,
  });
  const submit = () => fetch(`${baseUrl}/batches`, { method: "POST", headers, body });
  const { id } = (await (await submit()).json()) as { id: string };
  const release = await holdWriteLock(t, join(directory, "service.sqlite"));
  const refused = submit();
  const waiting = { isOver: false };
  void refused.then(() => (waiting.isOver = true));
  let rounds = 0;
  for (; !waiting.isOver; rounds++) {
    for (const path of ["/jobs", `/batches/${id}`, "/../healthz", "/../readyz"]) {
      assert.equal((await fetch(`${baseUrl}${path}`, { headers })).status, 200, path);
    }
    await delay(pauseMs);
  }
  assert.ok(rounds > 1, "reads waited for the write");
  const answer = await refused;
  assert.equal(answer.status, 503);
  assert.equal(answer.headers.get("retry-after"), "5");
  assert.equal(problem.parse(await answer.json()).code, "unavailable");
  const next = submit();
  await release();
  assert.equal((await next).status, 202);
});
