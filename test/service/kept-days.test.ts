import assert from "node:assert/strict";
import test from "node:test";
import { buildRetention, keptDays } from "../../src/service/settings/storage-settings.ts";

const dayMs = 86_400_000;

test("days to keep things are those of all projects and of some", () => {
  const days = { logs: keptDays.parse("team-a=7"), artifacts: undefined, models: undefined };
  const retention = buildRetention({ ...days, jobs: keptDays.parse("30, team-a=forever,b=2") });
  const { projects, ...times } = retention;
  assert.deepEqual(times, {
    jobs: 30 * dayMs,
    logs: undefined,
    artifacts: undefined,
    models: undefined,
  });
  assert.deepEqual(
    [projects?.get("team-a")?.jobs, projects?.get("b")?.jobs],
    [Infinity, 2 * dayMs],
  );
  assert.deepEqual(
    [projects?.get("team-a")?.logs, projects?.get("b")?.logs],
    [7 * dayMs, undefined],
  );
});

for (const wrong of [
  "",
  "0",
  "36501",
  "soon",
  "30,",
  "team a=3",
  "a=1,a=2",
  "1,2",
  "=5",
  "a=b=3",
]) {
  test(`days to keep things cannot be "${wrong}"`, () => {
    assert.match(keptDays.safeParse(wrong).error?.issues[0]?.message ?? "", /^must be days from 1/);
  });
}
