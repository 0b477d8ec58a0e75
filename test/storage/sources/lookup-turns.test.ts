import assert from "node:assert/strict";
import test from "node:test";
import { createLookupTurns, lookupLimits } from "../../../src/storage/sources/lookup-turns.ts";

test("lookups that wait are bounded by project, and all get their turn", async () => {
  const takeTurn = createLookupTurns();
  const { promise: found, resolve: find } = Promise.withResolvers<string>();
  const { ofProject, waitingOfProject } = lookupLimits;
  const names = Array.from({ length: ofProject + waitingOfProject }, () =>
    takeTurn("busy", () => found),
  );
  await assert.rejects(
    takeTurn("busy", () => found),
    { code: "unavailable", headers: { "retry-after": "10" } },
  );
  assert.equal(await takeTurn("other", async () => "other"), "other");
  find("found");
  assert.deepEqual(new Set(await Promise.all(names)), new Set(["found"]));
  assert.equal(await takeTurn("busy", async () => "again"), "again");
});
