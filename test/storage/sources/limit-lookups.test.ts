import assert from "node:assert/strict";
import test from "node:test";
import { limitLookups, lookupLimits } from "../../../src/storage/sources/limit-lookups.ts";

test("lookups that wait are bounded by project, and all get their turn", async () => {
  const limitLookup = limitLookups();
  const { promise: found, resolve: find } = Promise.withResolvers<string>();
  const { ofProject, waitingOfProject } = lookupLimits;
  const names = Array.from({ length: ofProject + waitingOfProject }, () =>
    limitLookup("busy", () => found),
  );
  await assert.rejects(
    limitLookup("busy", () => found),
    { code: "unavailable", headers: { "retry-after": "10" } },
  );
  assert.equal(await limitLookup("other", async () => "other"), "other");
  find("found");
  assert.deepEqual(new Set(await Promise.all(names)), new Set(["found"]));
  assert.equal(await limitLookup("busy", async () => "again"), "again");
});
