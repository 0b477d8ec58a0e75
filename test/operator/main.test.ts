import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { spawnOperator, startOperator } from "./start-operator.ts";

const skip = clusterMissing;
const nowhere = { kubeconfig: "/dev/null", namespace: "default" };

const refusals: readonly (readonly [string, Record<string, string>, RegExp])[] = [
  [
    "a service URL that is none",
    { MOS_SERVICE_URL: "model-optimization" },
    /settings are invalid[^]*MOS_SERVICE_URL/,
  ],
  [
    "volumes that are no JSON",
    { MOS_WORKER_VOLUMES: "models" },
    /MOS_WORKER_VOLUMES is "models" and must be JSON/,
  ],
  [
    "a time to live that is no number",
    { MOS_JOB_TTL_SECONDS: "1h" },
    /MOS_JOB_TTL_SECONDS is "1h" and must be a whole number/,
  ],
  [
    "a targets file that is not there",
    { MOS_TARGETS_FILE: "/nowhere.yaml" },
    /Targets file "\/nowhere.yaml" cannot be used/,
  ],
];

for (const [what, environment, message] of refusals) {
  test(`the operator does not start with ${what}, and reports it`, async () => {
    await using operator = spawnOperator({ ...nowhere, environment });
    assert.equal(await operator.ended, 1);
    const output = operator.log.join("\n");
    assert.match(output, message);
    assert.doesNotMatch(output, /\n\s+at /);
  });
}

test("the operator names what is wrong with a target", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "targets-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "targets.yaml");
  await writeFile(file, "targets: [{ name: GPU }]");
  await using operator = spawnOperator({ ...nowhere, environment: { MOS_TARGETS_FILE: file } });
  assert.equal(await operator.ended, 1);
  assert.match(operator.log.join("\n"), /targets\[0\].name/);
});

test("an operator that is asked to stop hands the leadership on", { skip }, async () => {
  const { cluster, namespace } = await createTestNamespace();
  const { kubeconfig } = cluster;
  await using first = await startOperator({ kubeconfig, namespace });
  await using second = spawnOperator({ kubeconfig, namespace });
  await second.logged("waiting for the leadership");
  assert.equal(await first.end("SIGTERM"), 0);
  await second.logged("Leading");
  assert.equal(await second.end("SIGTERM"), 0);
});
