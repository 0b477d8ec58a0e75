import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, stat, watch } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import test from "node:test";
import type { LogLine } from "../../src/contract/jobs/log.ts";
import { followJob } from "../support/follow-job.ts";
import { realModel } from "../support/real-models.ts";
import { startRunningService } from "../support/running-service.ts";

test("a batch goes on after the service is killed in the middle of it", async (t) => {
  const first = await startRunningService(t, { environment: { MOS_WORKERS: "1" } });
  const [{ source }, { source: other }] = await Promise.all([
    first.client.uploadModel(realModel("voice-v5")),
    first.client.uploadModel(realModel("ocr-orientation")),
  ]);
  const recipe = { evaluation: { latencyBudgetSeconds: 0, samples: 2 } };
  const models = [{ source }, { source: other }];
  const batch = await first.client.call("submitBatch", {
    body: { models, targets: ["cpu", "cpu-int8"], recipe },
  });
  const seen: LogLine[] = [];
  const [running] = batch.jobs;
  assert.ok(running !== undefined);
  for await (const line of first.client.followLogs(running.id)) {
    seen.push(line);
    if (line.text.startsWith("[optimize]")) break;
  }
  first.process.kill("SIGKILL");
  await once(first.process, "exit");

  const { client } = await startRunningService(t, { from: first });
  for (const job of batch.jobs) {
    const { lines, status } = await followJob(client, job.id);
    assert.equal(status, "Completed");
    assert.deepEqual(
      lines.map((line) => line.seq),
      lines.map((_, index) => index + 1),
    );
    const attempts = lines.filter((line) => line.text.includes(", attempt "));
    assert.equal(attempts.length, job.id === running.id ? 2 : 1);
    if (job.id === running.id) assert.deepEqual(lines.slice(0, seen.length), seen);
  }
  assert.equal((await client.call("getBatch", { params: { id: batch.id } })).status, "Completed");
});

test("an upload goes on after the service is killed in the middle of it", async (t) => {
  const first = await startRunningService(t);
  const file = realModel("voice-v5");
  const content = await readFile(file);
  const half = Math.floor(content.length / 2);
  const sha256 = createHash("sha256").update(content).digest("hex");
  const incoming = join(first.directory, "incoming");
  const changes = watch(incoming, { signal: t.signal });
  const headers = { authorization: `Bearer ${first.token}`, "content-length": content.length };
  const sender = request(`${first.baseUrl}/models/${sha256}`, { method: "PUT", headers });
  sender.on("error", () => {});
  sender.write(content.subarray(0, half));
  for await (const _ of changes) {
    const [partial = ""] = await readdir(incoming);
    if (partial !== "" && (await stat(join(incoming, partial))).size === half) break;
  }
  first.process.kill("SIGKILL");
  await once(first.process, "exit");

  const { client } = await startRunningService(t, { from: first });
  const starts: number[] = [];
  await client.uploadModel(file, { onStart: (offset) => starts.push(offset) });
  assert.deepEqual(starts, [half]);
});

test("a second service on the same data folder is refused with a sentence", async (t) => {
  const first = await startRunningService(t);
  await assert.rejects(startRunningService(t, { from: first }), /did not start/);
});
