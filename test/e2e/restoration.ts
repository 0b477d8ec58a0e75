import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { chartFolder, helm, valueFlags } from "../charts/helm.ts";
import { imageNames } from "../support/cluster/image-builds.ts";
import { openPageShell, readPage } from "../support/cluster/page-scripts.ts";
import { createStepRunner } from "./create-step-runner.ts";
import { addVolume, claim, type Installation, namespace, release } from "./installation.ts";
import { readFullLog } from "./job-log.ts";
import type { Models } from "./jobs.ts";

const manifest = join(import.meta.dirname, "../../docs/restore-job.yaml");

/** A copy of the volume that the chart's CronJob makes, and the service on a volume that it was restored to. */
export async function testRestoration(
  group: TestContext,
  installation: Installation,
  { uploaded }: Models,
): Promise<void> {
  const step = createStepRunner(group, installation);
  const { cluster, client, kubectl, apply, readResourceField, untilField, untilReady } =
    installation;
  const [page, shell] = [await readPage("backup.md"), await openPageShell(cluster)];
  const [copyNow = "", restore = ""] = page.listScripts("In a cluster");
  const upgrade = async (service: object) => {
    const flags = ["--reset-then-reuse-values", ...valueFlags({ service })];
    const args = ["upgrade", release, chartFolder, `--namespace=${namespace}`, ...flags];
    await helm(args, cluster.kubeconfig);
    await untilReady();
  };
  await step("what a backup has is there once it is restored to another volume", async () => {
    await apply("CompressionJob", "backed-up", { model: uploaded, target: "cpu" });
    await untilField("cpj/backed-up", ".status.report.recorded", "true");
    // That is the service's part of the status, and the id the operator's.
    await untilField("cpj/backed-up", ".status.status", "Completed");
    const id = await readResourceField("cpj/backed-up", ".status.jobId");
    const log = await readFullLog(installation, id);
    for (const name of ["backups", `${release}-restored`]) await addVolume(cluster, name);
    await kubectl(["create", "-f", "-"], JSON.stringify(claim({ name: "backups", namespace })));

    await upgrade({ backup: { schedule: "0 3 * * *", existingClaim: "backups" } });
    await shell(`kubectl config set-context --current --namespace ${namespace}`);
    const [, copy = ""] = /are in "(.*)"/.exec(await shell(copyNow)) ?? [];
    await apply("CompressionJob", "later", { model: uploaded, target: "cpu", dryRun: true });
    await untilField("cpj/later", ".status.status", "Completed");

    const text = (await readFile(manifest, "utf8"))
      .replaceAll("registry.example.com/team/model-optimization-service:0.1.0", imageNames.service)
      .replaceAll("/backups/2026-01-01T03-00-00Z", copy);
    const file = join(cluster.folder, "restore-job.yaml");
    await writeFile(file, text);
    assert.doesNotMatch(await shell(restore.replace("docs/restore-job.yaml", file)), /Missing/);
    await untilReady();
    assert.equal(await readFullLog(installation, id), log);
    const { artifacts } = await client.call("getJob", { params: { id } });
    const folder = cluster.folder;
    for (const { name } of artifacts)
      await client.downloadArtifact(id, name, { file: join(folder, name) });
    const later = await readResourceField("cpj/later", ".status.jobId");
    assert.equal((await client.call("getJob", { params: { id: later } })).status, "Completed");
    await upgrade({ persistence: { existingClaim: "" }, backup: { schedule: "" } });
  });
}
