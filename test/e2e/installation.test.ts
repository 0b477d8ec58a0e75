import { basename } from "node:path";
import { test } from "node:test";
import {
  helmMissing,
  nodeMissing,
  opensslMissing,
  postgresMissing,
  s3Missing,
} from "../support/cluster/cluster-missing.ts";
import { startCluster } from "../support/cluster/start-cluster.ts";
import { pythonMissing } from "../support/python.ts";
import { realModel } from "../support/real-models.ts";
import { testCalls } from "./calls.ts";
import { testCancellation } from "./cancellation.ts";
import { testFaults } from "./faults.ts";
import { testGuide } from "./guide.ts";
import { install, namespace } from "./installation.ts";
import { testJobs } from "./jobs.ts";
import { testNamespaces } from "./namespaces.ts";
import { testRelease } from "./release.ts";
import { testRemoval } from "./removal.ts";
import { testReplicas } from "./replicas.ts";
import { testRestoration } from "./restoration.ts";

const skip = nodeMissing || helmMissing || opensslMissing || pythonMissing;
const modelFile = realModel("page-orientation");

test("an installation on a real node", { skip }, async (t) => {
  const cluster = await startCluster({
    images: ["service", "worker"],
    auditedNamespace: namespace,
  });
  t.after(() => cluster.stop());
  const installation = await install(cluster, { mountedModels: [modelFile] });
  const { source } = await installation.client.uploadModel(modelFile);
  const models = {
    uploaded: { source, name: "orientation" },
    mounted: { source: `file:///models/${basename(modelFile)}` },
  };
  await t.test("jobs run", { concurrency: true }, (group) => testJobs(group, installation, models));
  await t.test("jobs are cancelled", (group) => testCancellation(group, installation, models));
  await t.test("faults", { concurrency: true }, (group) => testFaults(group, installation, models));
  await t.test("calls", (group) => testCalls(group, installation));
  await t.test("namespaces", (group) => testNamespaces(group, installation, models));
  await t.test("restoration", (group) => testRestoration(group, installation, models));
  await t.test("releases", (group) => testRelease(group, installation, models));
  await t.test("removal", (group) => testRemoval(group, installation, models));
  await t.test("the page leads from nothing to the first result", () =>
    testGuide(cluster, modelFile),
  );
  await t.test(
    "two replicas that are restarted under load fail no request",
    { skip: postgresMissing || s3Missing },
    (step) => testReplicas(step, cluster),
  );
});
