import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { offerFirstSignIn } from "../../src/service/first-sign-in.ts";
import { openTestRecords } from "../records/new-jobs.ts";
import { ownPage } from "../server/test-sessions.ts";
import { startRunningService } from "../support/running-service.ts";

const secret = "A1b2_".repeat(8) + "xyz";

async function signIn(baseUrl: string): Promise<number> {
  const headers = { ...ownPage, "content-type": "application/json" };
  const body = JSON.stringify({ secret });
  return (await fetch(`${baseUrl}/sessions`, { method: "POST", headers, body })).status;
}

test("a file's secret signs the first administrator in, and nobody after that", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "sign-in-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "secret");
  await writeFile(file, `${secret}\n`);
  const environment = { MOS_FIRST_SIGN_IN_FILE: file };
  const restart = async (from: Awaited<ReturnType<typeof startRunningService>>) => {
    from.process.kill("SIGTERM");
    await once(from.process, "exit");
    return startRunningService(t, { from, environment });
  };
  const first = await startRunningService(t, { environment });
  const second = await restart(first);
  assert.equal(await signIn(second.baseUrl), 201);
  assert.equal(await signIn(second.baseUrl), 401);
  const third = await restart(second);
  assert.equal(await signIn(third.baseUrl), 401);
});

test("a file without such a secret is an error at the start", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "sign-in-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "secret");
  await writeFile(file, "short");
  const records = await openTestRecords();
  await assert.rejects(offerFirstSignIn(file, records, new Date()), /secret" cannot be used.*43/);
});
