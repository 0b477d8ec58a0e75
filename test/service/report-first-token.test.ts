import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { reportFirstToken } from "../../src/service/first-sign-in.ts";
import { startRunningService } from "../support/running-service.ts";

async function reportToken(t: TestContext, isTTY: boolean) {
  const directory = await mkdtemp(join(tmpdir(), "first-"));
  t.after(() => rm(directory, { recursive: true }));
  let printed = "";
  const output = { isTTY, write: (text: string) => (printed += text) };
  await reportFirstToken("mos_secret", output, directory);
  return { printed, file: join(directory, "first-token") };
}

test("the first token is shown to a person at a terminal, and stored nowhere", async (t) => {
  const { printed, file } = await reportToken(t, true);
  assert.match(printed, /mos_secret\n$/);
  await assert.rejects(stat(file), { code: "ENOENT" });
});

test("the first token is not printed where output is collected, but kept for the owner", async (t) => {
  const { printed, file } = await reportToken(t, false);
  assert.ok(!printed.includes("mos_secret"));
  assert.ok(printed.endsWith(`${file}\n`));
  assert.equal(await readFile(file, "utf8"), "mos_secret\n");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
});

test("the service's first token opens it, and is found in its file", async (t) => {
  const { client, directory } = await startRunningService(t);
  const [own, ...others] = (await client.call("listTokens", {})).tokens;
  assert.deepEqual([own?.name, others], ["first", []]);
  assert.notEqual(own?.expiresAt, null);
  assert.equal((await stat(join(directory, "first-token"))).mode & 0o777, 0o600);
});
