import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { problem } from "../../src/contract/errors.ts";
import { buildFailingCalls, makeFailureCounts } from "../support/failing-calls.ts";
import { startRunningService } from "../support/running-service.ts";
import { unlimited } from "../support/submit-until.ts";

/** A service whose calls for its data all fail with EIO as long as the test says so. */
async function startOnFailingDisk(t: TestContext, calls: readonly string[]) {
  const cleanup = new AsyncDisposableStack();
  t.after(() => cleanup.disposeAsync());
  const owner = { after: (work: () => unknown) => cleanup.defer(async () => void (await work())) };
  const folder = await mkdtemp(join(tmpdir(), "failing-disk-"));
  owner.after(() => rm(folder, { recursive: true }));
  const describeFailure = await buildFailingCalls(folder);
  if (describeFailure === undefined) return undefined;
  const [file, directory] = [join(folder, "counts"), join(folder, "data")];
  const counts = await makeFailureCounts(file, calls);
  const failure = {
    calls,
    error: "EIO",
    first: 1,
    step: 1,
    folder: directory,
    counts: file,
  } as const;
  const environment = { ...unlimited, ...describeFailure(failure) };
  const { baseUrl, token, client } = await startRunningService(owner, { directory, environment });
  const submit = async (key?: string) => {
    const answer = await fetch(`${baseUrl}/compress`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...(key !== undefined && { "idempotency-key": key }),
      },
      body: JSON.stringify({ model: { source: "https://127.0.0.1:1/a.onnx" }, target: "cpu" }),
    });
    const text: unknown = await answer.json();
    return answer.ok ? "created" : problem.parse(text).code;
  };
  return { client, submit, fail: () => counts.allow(1_000_000), recover: () => counts.allow(0) };
}

for (const calls of [["pread"], ["pwrite"], ["fdatasync"]]) {
  test(`a submission at which ${calls.join()} fails is taken with its key afterwards`, async (t) => {
    const disk = await startOnFailingDisk(t, calls);
    if (disk === undefined) return t.skip("Needs a C compiler on Linux");
    assert.equal(await disk.submit("first"), "created");
    await disk.fail();
    assert.equal(await disk.submit("second"), "unavailable");
    await disk.recover();
    assert.equal(await disk.submit("second"), "created");
  });
}

test("a job that was recorded though its flush failed is worked on", async (t) => {
  const disk = await startOnFailingDisk(t, ["fdatasync"]);
  if (disk === undefined) return t.skip("Needs a C compiler on Linux");
  await disk.fail();
  assert.equal(await disk.submit(), "unavailable");
  await disk.recover();
  const { jobs } = await disk.client.call("listJobs", { query: {} });
  assert.equal(jobs.length, 1);
  const lines = await Array.fromAsync(disk.client.followLogs(jobs[0]?.id ?? ""));
  assert.notEqual(lines.length, 0);
});
