import assert from "node:assert/strict";
import test from "node:test";
import { settings } from "../../src/service/settings/settings.ts";
import { buildRetention, keptDays } from "../../src/service/settings/storage-settings.ts";
import { parseEnvironment } from "../../src/settings/parse-environment.ts";

const dayMs = 86_400_000;

test("days to keep things are those of all projects and of some", () => {
  const { MOS_KEEP_DAYS: days } = parseEnvironment(settings, {
    MOS_KEEP_DAYS: "{jobs: 30, projects: {team-a: {jobs: forever, logs: 7}, b: {jobs: 2}}}",
  });
  const { projects, ...times } = buildRetention(days);
  assert.deepEqual(times, { jobs: 30 * dayMs });
  assert.deepEqual(
    [projects?.get("team-a")?.jobs, projects?.get("b")?.jobs],
    [Infinity, 2 * dayMs],
  );
  assert.deepEqual(
    [projects?.get("team-a")?.logs, projects?.get("b")?.logs],
    [7 * dayMs, undefined],
  );
  assert.deepEqual(buildRetention(keptDays.parse({})), { projects: new Map() });
});

for (const [wrong, message] of [
  ["", /^MOS_KEEP_DAYS is null and must be an object$/m],
  ["{jobs: 30", /^MOS_KEEP_DAYS is "\{jobs: 30" and must be YAML: Flow map/m],
  ["{jobs: 0}", /^MOS_KEEP_DAYS\.jobs is 0 and must be days from 1 to 36500, or forever$/m],
  ["{logs: 36501}", /^MOS_KEEP_DAYS\.logs is 36501 and must be days from 1/m],
  ["{models: soon}", /^MOS_KEEP_DAYS\.models is "soon" and must be days from 1/m],
  ["{uploads: 1}", /^MOS_KEEP_DAYS\.uploads is not known; the known ones are jobs, logs/m],
  ["{jobs: 1, jobs: 2}", /^MOS_KEEP_DAYS .*must be YAML: .*unique at line 1, column 11$/m],
  ["{projects: {team a: {jobs: 3}}}", /^MOS_KEEP_DAYS\.projects\.team a /m],
  ["{projects: {a: {jobs: 0}}}", /^MOS_KEEP_DAYS\.projects\.a\.jobs is 0 and must be days/m],
] as const) {
  test(`days to keep things cannot be "${wrong}"`, () => {
    assert.throws(() => parseEnvironment(settings, { MOS_KEEP_DAYS: wrong }), message);
  });
}
