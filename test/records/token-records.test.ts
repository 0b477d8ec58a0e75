import assert from "node:assert/strict";
import { test } from "node:test";
import { openRecords } from "../../src/records/open-records.ts";
import { testDatabase } from "../support/test-database.ts";
import { openTestRecords } from "./new-jobs.ts";

const newToken = {
  secret: "mos_abcdefgh",
  name: "laptop",
  scopes: ["jobs:read", "jobs:write"],
  prefix: "mos_abcd",
  hash: "c".repeat(64),
  expiresAt: null,
  policy: null,
} as const;

test("tokens.findByHash() finds the token with its project", async () => {
  const records = await openTestRecords();
  const { token: secret, ...token } = await records.tokens.create("team-a", newToken);
  assert.equal(secret, newToken.secret);
  assert.deepEqual(await records.tokens.findByHash(newToken.hash), {
    project: "team-a",
    token,
    memberships: null,
    workflow: null,
  });
  assert.equal(await records.tokens.findByHash("d".repeat(64)), undefined);
  await records.close();
});

test("tokens.list() lists a project's tokens, newest first", async () => {
  const records = await openTestRecords();
  await records.tokens.create("team-a", newToken);
  await records.tokens.create("team-a", { ...newToken, name: "server", hash: "d".repeat(64) });
  await records.tokens.create("team-b", { ...newToken, hash: "e".repeat(64) });
  const names = (await records.tokens.list("team-a")).map((token) => token.name);
  assert.deepEqual(names, ["server", "laptop"]);
  await records.close();
});

test("tokens.revoke() keeps the time of the first revocation", async () => {
  const records = await openTestRecords();
  const { id } = await records.tokens.create("team-a", newToken);
  assert.equal(await records.tokens.revoke("team-b", id), false);
  assert.equal(await records.tokens.revoke("team-a", id), true);
  const [revoked] = await records.tokens.list("team-a");
  assert.notEqual(revoked?.revokedAt, null);
  assert.equal(await records.tokens.revoke("team-a", id), true);
  assert.deepEqual(await records.tokens.list("team-a"), [revoked]);
  await records.close();
});

test("tokens.touch() notes the last use to the minute", async () => {
  let now = new Date("2026-03-01T00:00:00.000Z");
  const records = await openRecords(await testDatabase(), { now: () => now });
  const { id } = await records.tokens.create("team-a", newToken);
  const lastUse = async () => {
    // Nobody waits for a last use; the next writer waits until it is written.
    await records.tokens.revoke("team-b", id);
    return (await records.tokens.list("team-a"))[0]?.lastUsedAt;
  };
  records.tokens.touch(id);
  assert.equal(await lastUse(), "2026-03-01T00:00:00.000Z");
  now = new Date("2026-03-01T00:00:59.000Z");
  records.tokens.touch(id);
  assert.equal(await lastUse(), "2026-03-01T00:00:00.000Z");
  now = new Date("2026-03-01T00:01:01.000Z");
  records.tokens.touch(id);
  assert.equal(await lastUse(), "2026-03-01T00:01:01.000Z");
  await records.close();
});

test("tokens.purge() forgets tokens of identity tokens a day after their end, and no others", async () => {
  let now = new Date("2026-03-01T00:00:00.000Z");
  const records = await openRecords(await testDatabase(), { now: () => now });
  const expiresAt = "2026-03-01T01:00:00.000Z";
  await records.tokens.create("team-a", { ...newToken, name: "made", expiresAt });
  await records.tokens.create("team-a", {
    ...newToken,
    name: "given",
    expiresAt,
    policy: "ci",
    hash: "d".repeat(64),
  });
  const names = async () => (await records.tokens.list("team-a")).map(({ name }) => name);
  now = new Date("2026-03-02T01:00:00.000Z");
  await records.tokens.purge();
  assert.deepEqual(await names(), ["given", "made"]);
  now = new Date("2026-03-02T01:00:00.001Z");
  await records.tokens.purge();
  assert.deepEqual(await names(), ["made"]);
  await records.close();
});
