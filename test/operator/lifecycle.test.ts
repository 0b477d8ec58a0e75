import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  recordFinalizer,
  resourceLabels,
} from "../../src/contract/custom-resources/resource-labels.ts";
import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { resources } from "../../src/kubernetes/resources.ts";
import { clusterMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { observeJobs } from "./compression-job/observe-jobs.ts";
import { spawnOperator, startOperator } from "./start-operator.ts";

/** Longest wait for anything: a busy machine is no reason to fail. */
const patience = "--timeout=240s";

/** A namespace with an operator that works on a job in mid-work, and no service. */
async function startJob(name: string) {
  const { cluster, namespace } = await createTestNamespace();
  const { kubeconfig } = cluster;
  const jobs = await observeJobs(cluster, namespace);
  const operator = await startOperator({ kubeconfig, namespace });
  await jobs.create({ name });
  await jobs.untilTrue(() => [...jobs.pods.values()].length === 1);
  const [pod] = jobs.pods.values();
  const running = { status: { phase: "Running" } };
  // The operator takes a job back to Pending none of whose pods runs.
  await jobs.client.patch(resources.pods, pod?.metadata.name ?? "", running, {
    subresource: "status",
  });
  await jobs.report(name, "Optimizing");
  const { metadata } = await jobs.until(name, ({ status }) => status.status === "Optimizing");
  assert.deepEqual(metadata.finalizers, [recordFinalizer]);
  const kubectl = (...args: readonly string[]) => cluster.kubectl([...args, "-n", namespace]);
  return { kubeconfig, namespace, jobs, operator, kubectl };
}

/** A pod and a Job with a job's label that are not the operator's workers. */
async function createForeign(client: KubernetesClient): Promise<void> {
  const metadata = { name: "foreign", labels: { [resourceLabels.jobId]: "job-1" } };
  const containers = [{ name: "foreign", image: "example.com/foreign:1" }];
  const spec = { serviceAccountName: "foreign", restartPolicy: "Never", containers };
  await client.create(resources.pods, { metadata, spec });
  await client.create(resources.jobs, { metadata, spec: { suspend: true, template: { spec } } });
}

// One after the other: `after` within tests at the same time ends namespaces of the others.
suite("the end of an installation in mid-work", { skip: clusterMissing }, () => {
  test("a deleted namespace goes, though its operator ends first", async () => {
    const { namespace, jobs, operator, kubectl } = await startJob("left");
    await using _operator = operator;
    await using _jobs = jobs;
    await kubectl("delete", "namespace", namespace, "--wait=false");
    assert.equal(await operator.end("SIGTERM"), 0);
    await kubectl("wait", `namespace/${namespace}`, "--for=delete", patience);
  });

  test("an uninstalled operator leaves no worker, keeps no job and stops nothing else", async () => {
    const { kubeconfig, namespace, jobs, operator, kubectl } = await startJob("left");
    await using _operator = operator;
    await using _jobs = jobs;
    const image = "--image=example.com/operator:1";
    await kubectl("create", "deployment", "operator", image);
    const command = ["uninstall", "operator"];
    await kubectl("create", "serviceaccount", "foreign");
    await createForeign(jobs.client);
    await using end = spawnOperator({ kubeconfig, namespace, command });
    await kubectl("wait", "deployment/operator", "--for=jsonpath={.spec.replicas}=0", patience);
    assert.equal(await operator.end("SIGTERM"), 0);
    assert.equal(await end.ended, 0, end.log.join("\n"));
    // Without those of the Deployment, whose end nobody waits for.
    const left = await kubectl("get", "pods,jobs", "-l", "!app", "-o", "name");
    assert.equal(left, "pod/foreign\njob.batch/foreign\n");
    assert.equal(await kubectl("get", "leases", "-o", "name"), "");
    const [status, finalizers] = (
      await kubectl("get", "cpj/left", "-o", "jsonpath={.status.status}/{.metadata.finalizers}")
    ).split("/");
    assert.equal(status, "Optimizing");
    assert.ok(finalizers === "" || finalizers === "[]", finalizers);
    await kubectl("delete", "cpj/left", patience);

    await using again = await startOperator({ kubeconfig, namespace });
    await jobs.create({ name: "next" });
    await jobs.untilTrue(() =>
      [...jobs.pods.values()].some(
        ({ metadata: { labels = {} } }) => labels[resourceLabels.job] === "next",
      ),
    );
    assert.equal(await again.end("SIGTERM"), 0);
  });

  test("a deleted job goes, though no service records it", async () => {
    const { jobs, operator, kubectl } = await startJob("unrecorded");
    await using _operator = operator;
    await using _jobs = jobs;
    await kubectl("delete", "cpj/unrecorded", patience);
    await jobs.until("unrecorded", ({ status }) => status.status === "Cancelled");
    assert.equal(await kubectl("get", "pods", "-o", "name"), "");
  });
});
