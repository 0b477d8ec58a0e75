import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { promisify } from "node:util";
import { createClient } from "../../src/client/create-client.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { chartFolder, helm, valueFlags } from "../charts/helm.ts";
import { programPath } from "../support/cluster/programs.ts";
import { type Installation, namespace, patience, release } from "./installation.ts";
import type { Models } from "./jobs.ts";
import { readFullLog } from "./job-log.ts";
import { listPodNames } from "./list-pod-names.ts";
import { createStepRunner } from "./create-step-runner.ts";

const exec = promisify(execFile);

/** The chart as it was before routes, certificates and the guard of the operator's account. */
const earlierChart = join(import.meta.dirname, "earlier-chart/model-optimization-0.1.0.tgz");

/** The release's notes, and jobs when it is upgraded, uninstalled and installed again. */
export async function testRelease(
  group: TestContext,
  installation: Installation,
  { uploaded, mounted }: Models,
) {
  const step = createStepRunner(group, installation);
  const { client, kubectl, apply, readResourceField, untilField, untilReady, cluster, token } =
    installation;
  const runHelm = (...args: readonly string[]) =>
    helm([...args, `--namespace=${namespace}`], cluster.kubeconfig);
  const listJobs = async () => (await client.call("listJobs", { query: { limit: "100" } })).jobs;

  await step("the notes lead to the REST interface", async () => {
    await runHelm("test", release);
    const notes = await runHelm("get", "notes", release);
    const [, words = ""] = /kubectl (.* port-forward .*)/.exec(notes) ?? [];
    const args = words.replace(/ \d+:/, " :").split(" ");
    const forward = spawn(await programPath("kubectl"), [
      `--kubeconfig=${cluster.kubeconfig}`,
      ...args,
    ]);
    try {
      const [line] = (await once(createInterface(forward.stdout), "line")) as [string];
      const [, address] = /from (\S+) ->/.exec(line) ?? [];
      const forwarded = createClient({ routes, baseUrl: `http://${address}/v1`, token });
      assert.deepEqual(
        await forwarded.call("listTargets", {}),
        await client.call("listTargets", {}),
      );
    } finally {
      forward.kill();
    }
  });

  await step("the first sign-in's Secret signs an administrator in", async () => {
    const notes = await runHelm("get", "notes", release);
    const [, words = "", template = ""] = /kubectl (.*go-template)='(.*)'/.exec(notes) ?? [];
    const args = [...words.split(" ").slice(0, -1), `go-template=${template}`];
    const link = await cluster.kubectl(args);
    const signIn = await fetch(`${installation.baseUrl}/sessions`, {
      method: "POST",
      headers: { "content-type": "application/json", "sec-fetch-site": "same-origin" },
      body: JSON.stringify({ secret: link.trim().split("#").at(-1) }),
    });
    assert.equal(signIn.status, 201);
  });

  await step("a running job goes on while the release is upgraded", async () => {
    const recipe = { dequantize: "run", evaluation: { latencyBudgetSeconds: 10 } };
    await apply("CompressionJob", "upgraded", { model: uploaded, target: "gpu", recipe });
    await untilField("cpj/upgraded", ".status.status", "Optimizing");
    const [cpu] = builtinTargets;
    const values = valueFlags({ targets: [{ ...cpu, name: "newer" }] });
    await runHelm("upgrade", release, chartFolder, "--reset-then-reuse-values", ...values);
    await untilReady();
    await untilField("cpj/upgraded", ".status.status", "Completed");
    const pods = await kubectl([
      "get",
      "pods",
      "-l",
      "modeloptimization.dev/job=upgraded",
      "-o",
      "name",
    ]);
    assert.equal(pods.trim().split("\n").length, 1);
    await apply("CompressionJob", "newer", { model: uploaded, target: "newer", dryRun: true });
    await untilField("cpj/newer", ".status.status", "Completed");
  });

  await step("the resources of all jobs can be deleted, and their history stays", async () => {
    const jobs = await listJobs();
    await kubectl(["delete", "cbatch,cpj", "--all", patience]);
    assert.deepEqual(await listJobs(), jobs);
  });

  await step("installed again, it takes up what it left", async () => {
    await apply("CompressionJob", "kept", { model: uploaded, target: "newer", dryRun: true });
    await untilField("cpj/kept", ".status.status", "Completed");
    const id = await readResourceField("cpj/kept", ".status.jobId");
    const log = await readFullLog(installation, id);
    await runHelm("uninstall", release, "--wait");
    await apply("CompressionJob", "between", { model: uploaded, target: "cpu", dryRun: true });
    await runHelm("install", release, chartFolder, ...installation.valueFlags);
    await untilReady();
    await untilField("cpj/between", ".status.status", "Completed");
    assert.equal(await readResourceField("cpj/kept", ".status.jobId"), id);
    assert.equal(await readFullLog(installation, id), log);
  });

  await step("a release of an earlier chart is upgraded in mid-job, and rolled back", async () => {
    const known = (await listJobs()).map(({ id }) => id);
    await runHelm("uninstall", release, "--wait");
    await runHelm("install", release, earlierChart, ...installation.valueFlags);
    await untilReady();
    const recipe = { dequantize: "run", evaluation: { latencyBudgetSeconds: 10 } };
    await apply("CompressionJob", "across", { model: uploaded, target: "gpu", recipe });
    await untilField("cpj/across", ".status.status", "Optimizing");
    await runHelm("upgrade", release, chartFolder, "--reset-then-reuse-values");
    await untilReady();
    await untilField("cpj/across", ".status.status", "Completed");
    const id = await readResourceField("cpj/across", ".status.jobId");
    assert.equal((await listPodNames(installation, id)).length, 1);
    await runHelm("rollback", release);
    await untilReady();
    await apply("CompressionJob", "back", { model: uploaded, target: "cpu", dryRun: true });
    await untilField("cpj/back", ".status.status", "Completed");
    const jobs = new Set((await listJobs()).map((job) => job.id));
    assert.deepEqual(
      [...known, id].filter((each) => !jobs.has(each)),
      [],
    );
  });
  await step("with a certificate it answers by https, to workers too", async () => {
    const files = await createServiceCertificate(cluster.folder);
    await kubectl(["create", "secret", "generic", "service-tls", ...files]);
    const tls = ["--set=service.tls.existingSecret=service-tls", "--reset-then-reuse-values"];
    await runHelm("upgrade", release, chartFolder, ...tls);
    await untilReady();
    await runHelm("test", release);
    await apply("CompressionJob", "encrypted", { model: mounted, target: "cpu" });
    await untilField("cpj/encrypted", ".status.status", "Completed");
  });
}

/** Arguments that name files of a certificate for the Service's name, by which it is known too. */
async function createServiceCertificate(folder: string): Promise<string[]> {
  const [certificate, key] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  const subject = [`/CN=${release}`, "-addext", `subjectAltName=DNS:${release}-service`];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const output = ["-keyout", key, "-out", certificate];
  await exec("openssl", ["req", "-x509", "-days", "1", ...curve, "-subj", ...subject, ...output]);
  const authority = join(folder, "ca.crt");
  await copyFile(certificate, authority);
  return [certificate, key, authority].map((file) => `--from-file=${file}`);
}
