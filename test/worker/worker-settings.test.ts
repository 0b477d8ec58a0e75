import assert from "node:assert/strict";
import test from "node:test";
import { readWorkerSettings } from "../../src/worker/worker-settings.ts";

const common = {
  MOS_SERVICE_URL: "http://127.0.0.1:8080",
  MOS_JOB_ID: "job-00000000000000000000000000",
};

for (const [what, environment, lines] of [
  [
    "a process",
    { ...common, MOS_JOB_TOKEN: "secret" },
    [
      "The worker's settings are invalid",
      "MOS_WORK_DIR is missing and must be a string",
      "MOS_STORAGE_DIR is missing and must be a string",
    ],
  ],
  [
    "a pod",
    { ...common, MOS_WORK_DIR: "/work", MOS_JOB_TOKEN_FILE: "/token", MOS_STOP_SECONDS: "0" },
    ["The worker's settings are invalid", "MOS_STOP_SECONDS is 0 and must be at least 1"],
  ],
] as const) {
  test(`settings of ${what} that are wrong are named, a line each`, () => {
    assert.throws(() => readWorkerSettings(environment), { message: lines.join("\n") });
  });
}
