import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import {
  resourceLabels,
  sharesAnnotation,
} from "../../src/contract/custom-resources/resource-labels.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { jobStep, workerJobName } from "../../src/resources/job-identity.ts";
import { clusterMissing, helmMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { render } from "./helm.ts";
import { until } from "../support/until.ts";

const fullname = "mos-model-optimization";
const worker = `${fullname}-worker`;
const operator = `${fullname}-operator`;
const service = `${fullname}-service`;
const targets = `configmap/${fullname}-targets`;
const kinds = [
  "ServiceAccount",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
  "Role",
  "RoleBinding",
  "Deployment",
  "ConfigMap",
  "Service",
  "CronJob",
];
const values = {
  targets: builtinTargets,
  service: { backup: { schedule: "0 3 * * *", existingClaim: "backups" } },
  admission: { models: true },
};

const denials = {
  workers: /Only the operator of CompressionJobs may run pods under the account/,
  changedWorker: /may change what pods under the account "\S+" run, and for whom/,
  enteredWorker: /may enter pods that are named like those of workers/,
  accounts: /Only who may create ClusterRoles may use the accounts of/,
  impersonation: /Only its own pods may act as system:serviceaccount:/,
  models: /The model failed gates of CompressionJob "failed": minCosine\./,
  unrecorded: /The gates of CompressionJob "unrecorded" are not recorded yet\./,
  configuration: /may change what the pods of "\S+" read, or answer as its service/,
};

const podSpec = (serviceAccountName: string) => ({
  serviceAccountName,
  restartPolicy: "Never",
  containers: [{ name: "worker", image: "none" }],
});
const pod = (name: string, { account = "default", labels = {} } = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels },
  spec: podSpec(account),
});
const jobLabels = { [resourceLabels.jobId]: "a", [resourceLabels.job]: "detector" };
const job = (name: string, { account = "default", labels = {}, podLabels = {} } = {}) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name, labels },
  spec: { template: { metadata: { labels: podLabels }, spec: podSpec(account) } },
});
const workerJob = (name: string) =>
  job(name, { account: worker, labels: jobLabels, podLabels: jobLabels });

type Ask = (args: readonly string[], object?: object) => Promise<string>;

/** The chart's objects that say who may do what, and who asks for it, each with a token of their own. */
async function install(t: TestContext) {
  const { cluster, namespace } = await createTestNamespace();
  const asAdmin: Ask = (args, object) =>
    cluster.kubectl(["-n", namespace, ...args], object && JSON.stringify(object));
  const items = (await render({ namespace, values })).filter(({ kind }) => kinds.includes(kind));
  const list = { apiVersion: "v1", kind: "List", items };
  await asAdmin(["apply", "-f", "-"], list);
  t.after(() => asAdmin(["delete", "--ignore-not-found", "-f", "-"], list));
  await asAdmin(["create", "serviceaccount", "mallory"]);
  const editor = ["--clusterrole=edit", `--serviceaccount=${namespace}:mallory`];
  await asAdmin(["create", "rolebinding", "edit", ...editor]);
  const withToken = async (account: string, ...flags: readonly string[]): Promise<Ask> => {
    const token = (await asAdmin(["create", "token", account, ...flags])).trim();
    return (args, object) => asAdmin([`--token=${token}`, ...args], object);
  };
  const findPod = async (selector: string) => {
    const selected = ["pods", "-l", selector];
    await asAdmin(["wait", ...selected, "--for=create", "--timeout=60s"]);
    return asAdmin(["get", ...selected, "-o", "jsonpath={.items[0].metadata.name}"]);
  };
  const findComponentPod = (component: string) =>
    findPod(`app.kubernetes.io/component=${component}`);
  /** As kubelets get it for the pod. */
  const inPod = async (component: string) =>
    withToken(
      `${fullname}-${component}`,
      "--bound-object-kind=Pod",
      `--bound-object-name=${await findComponentPod(component)}`,
    );
  const asMallory = await withToken("mallory");
  return { namespace, asAdmin, asMallory, withToken, inPod, findPod, findComponentPod };
}

type Installed = Awaited<ReturnType<typeof install>>;

const dryRun = ["create", "--dry-run=server", "-f", "-"];
const create = (ask: Ask, object: object) => ask(["create", "-f", "-"], object);

/** The API server compiles a new policy a moment later. */
async function untilDenied(attempt: () => Promise<string>, denial: RegExp): Promise<void> {
  await until(`the API server denies with ${denial}`, async () =>
    denial.test(await attempt().catch(String)),
  );
}

/** What kubectl asks when it enters a pod, whether there is one or not. */
function enter(ask: Ask, { namespace }: Installed, name: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/exec?command=id`;
  return ask(["create", "--raw", path, "-f", "-"], {});
}

const checks: Readonly<Record<string, (installed: Installed) => Promise<void>>> = {
  "runs nothing under the workers' account": async ({ asMallory, inPod, findPod }) => {
    const forged = pod("forged", { account: worker });
    await untilDenied(() => asMallory(dryRun, forged), denials.workers);
    await assert.rejects(create(asMallory, forged), denials.workers);
    await assert.rejects(create(asMallory, workerJob("forged")), denials.workers);
    await assert.rejects(asMallory(["create", "token", worker]), denials.workers);
    const { serviceAccountName: serviceAccount, ...aliased } = podSpec(worker);
    const alias = { ...pod("forged"), spec: { ...aliased, serviceAccount } };
    await assert.rejects(create(asMallory, alias), denials.workers);
    for (const labelled of [
      pod("forged", { labels: jobLabels }),
      job("forged", { labels: jobLabels }),
      job("forged", { podLabels: jobLabels }),
    ]) {
      await assert.rejects(create(asMallory, labelled), denials.workers);
    }
    await create(asMallory, pod("own"));
    await create(asMallory, job("own"));
    const label = `--overwrite ${resourceLabels.jobId}=a`.split(" ");
    await assert.rejects(asMallory(["label", "pod", "own", ...label]), denials.changedWorker);
    await assert.rejects(asMallory(["label", "job", "own", ...label]), denials.changedWorker);

    await create(await inPod("operator"), workerJob("a-work"));
    await findPod("job-name=a-work");
  },

  "neither changes nor enters workers": async (installed) => {
    const { asAdmin, asMallory, findPod } = installed;
    const name = await findPod("job-name=a-work");
    const patch = (change: object) =>
      asMallory(["patch", "pod", name, `--patch=${JSON.stringify(change)}`]);
    const owner = { apiVersion: "batch/v1", kind: "Job", name: "other", uid: "other" };
    for (const change of [
      { spec: { containers: [{ name: "worker", image: "evil" }] } },
      { metadata: { labels: { [resourceLabels.jobId]: "b" } } },
      { metadata: { labels: { [resourceLabels.step]: "assemble" } } },
      { metadata: { ownerReferences: [owner] } },
    ]) {
      await assert.rejects(patch(change), denials.changedWorker, JSON.stringify(change));
    }
    for (const metadata of [
      { ownerReferences: [owner] },
      { labels: { [resourceLabels.jobId]: "b" } },
      { labels: { [resourceLabels.jobId]: null } },
      { labels: { [resourceLabels.step]: "assemble" } },
      { annotations: { [sharesAnnotation]: "9" } },
    ]) {
      await assert.rejects(
        asMallory(["patch", "job", "a-work", `--patch=${JSON.stringify({ metadata })}`]),
        denials.changedWorker,
        JSON.stringify(metadata),
      );
    }
    const ephemeralContainers = [{ name: "debugger", image: "evil" }];
    const debug = ["--subresource=ephemeralcontainers", "--as=editor", "--as-group=editors"];
    await asAdmin(["create", "role", "debug", "--verb=*", "--resource=pods/ephemeralcontainers"]);
    await asAdmin(["create", "rolebinding", "debug", "--role=debug", "--group=editors"]);
    const change = `--patch=${JSON.stringify({ spec: { ephemeralContainers } })}`;
    await assert.rejects(asAdmin(["patch", "pod", name, change, ...debug]), denials.changedWorker);
    await patch({ metadata: { labels: { team: "research" } } });

    await assert.rejects(asMallory(["exec", name, "--", "id"]), denials.enteredWorker);
    await assert.rejects(asMallory(["attach", name]), denials.enteredWorker);
    const short = jobStep.options.map((step) => workerJobName("a", step));
    const hashed = ["a.dotted.name", "a".repeat(100)].map((each) => workerJobName(each, "work"));
    for (const start of [...short, ...hashed, `${workerJobName("a", "optimize")}-12`]) {
      const entered = enter(asMallory, installed, `${start}-x7x2q`);
      await assert.rejects(entered, denials.enteredWorker, start);
    }
    await assert.rejects(enter(asMallory, installed, "absent-7d67846b58-66rlc"), /not found/);
  },

  "has no other controller run workers where all of them are one user": async (installed) => {
    const { asAdmin } = installed;
    const user = "system:kube-controller-manager";
    await asAdmin(["create", "rolebinding", "controllers", "--clusterrole=edit", `--user=${user}`]);
    const asControllers: Ask = (args, object) => asAdmin([`--as=${user}`, ...args], object);
    const ownedBy = (apiVersion: string, kind: string, controller: boolean) => {
      const { metadata, ...forged } = pod("forged", { account: worker });
      const owner = { apiVersion, kind, name: "a", uid: "a", controller };
      return { ...forged, metadata: { ...metadata, ownerReferences: [owner] } };
    };
    for (const forged of [
      pod("forged", { account: worker }),
      ownedBy("apps/v1", "ReplicaSet", true),
      ownedBy("example.com/v1", "Job", true),
      ownedBy("batch/v1", "Job", false),
    ]) {
      await assert.rejects(asControllers(dryRun, forged), denials.workers);
    }
    await asControllers(dryRun, ownedBy("batch/v1", "Job", true));
  },

  "does not end Jobs of workers by writing their status": async ({ asAdmin }) => {
    const role = ["--verb=*", "--resource=jobs.batch/status"];
    await asAdmin(["create", "role", "statuses", ...role]);
    await asAdmin(["create", "rolebinding", "statuses", "--role=statuses", "--group=reporters"]);
    const as = ["--as=reporter", "--as-group=reporters", "--subresource=status"];
    const patch = (what: string, change: object) =>
      asAdmin(["patch", "job", what, `--patch=${JSON.stringify(change)}`, ...as]);
    await assert.rejects(patch("a-work", { status: { succeeded: 1 } }), denials.changedWorker);
    const labels = { [resourceLabels.step]: "assemble" };
    await assert.rejects(patch("a-work", { metadata: { labels } }), denials.changedWorker);
    await assert.rejects(patch("own", { metadata: { labels: jobLabels } }), denials.changedWorker);
    await patch("own", { status: { ready: 0 } });
  },

  "does not act as an account of the release": async (installed) => {
    const { namespace, asAdmin, asMallory, withToken, inPod } = installed;
    const as = (account: string) => `--as=system:serviceaccount:${namespace}:${account}`;
    const asOperator: Ask = (args, object) => asMallory([as(operator), ...args], object);
    await untilDenied(() => asOperator(dryRun, workerJob("forged")), denials.impersonation);
    await assert.rejects(create(asOperator, workerJob("forged")), denials.impersonation);
    await assert.rejects(asOperator(["delete", "job", "a-work"]), denials.impersonation);
    const stolen = await withToken(operator);
    await assert.rejects(create(stolen, workerJob("forged")), denials.impersonation);

    const job = {
      apiVersion: "modeloptimization.dev/v1",
      kind: "CompressionJob",
      metadata: { name: "theirs" },
      spec: { model: { source: "https://models.example/model.onnx" }, target: "cpu" },
    };
    await create(asAdmin, job);
    const { spec: _, ...named } = job;
    const reported = { ...named, status: { status: "Pending" } };
    // Unlike other commands, this one asks for no more than it changes.
    const report = ["apply", "--server-side", "--subresource=status", "-f", "-"];
    const forged = asMallory([as(service), ...report], reported);
    await assert.rejects(forged, denials.impersonation);
    await (
      await inPod("service")
    )(report, reported);
  },

  "changes neither the configuration nor who answers": async (installed) => {
    const { namespace, asAdmin, asMallory } = installed;
    const data = `--patch=${JSON.stringify({ data: { "targets.yaml": "targets: []" } })}`;
    const all = `/api/v1/namespaces/${namespace}/configmaps?labelSelector=app.kubernetes.io/name`;
    const labels = {
      "app.kubernetes.io/name": "model-optimization",
      "app.kubernetes.io/instance": "mos",
      "app.kubernetes.io/component": "service",
    };
    const selector = `--patch=${JSON.stringify({ spec: { selector: { app: "x" } } })}`;
    const forged = pod("forged", { labels });
    await untilDenied(() => asMallory(dryRun, forged), denials.configuration);
    for (const attempt of [
      ["patch", targets, data],
      ["delete", targets],
      ["delete", "--raw", all],
      ["create", "configmap", `${fullname}-trust-policy`],
      ["patch", "service", service, selector],
      ["label", "pod", "own", ...Object.entries(labels).map((pair) => pair.join("="))],
    ]) {
      await assert.rejects(asMallory(attempt), denials.configuration, attempt.join(" "));
    }
    await assert.rejects(create(asMallory, forged), denials.configuration);
    await asMallory(["create", "configmap", "own"]);
    await asMallory(["label", "service", service, "team=research"]);

    await asAdmin(["patch", targets, data]);
    const controller = "--as=system:serviceaccount:kube-system:namespace-controller";
    await asAdmin(["delete", "--raw", all, controller]);
  },
  "starts no pod with a model whose gates failed": async ({ asAdmin, asMallory }) => {
    const spec = { model: { source: "https://models.example/model.onnx" }, target: "cpu" };
    const gated = { ...spec, gates: { minCosine: 0.99 } };
    const record = async (name: string, status: object, wanted: object = gated) => {
      const resource = {
        apiVersion: "modeloptimization.dev/v1",
        kind: "CompressionJob",
        metadata: { name },
        spec: wanted,
      };
      await create(asAdmin, resource);
      const patch = `--patch=${JSON.stringify({ status })}`;
      await asAdmin([
        "patch",
        "compressionjob",
        name,
        "--subresource=status",
        "--type=merge",
        patch,
      ]);
    };
    const gate = { gate: "minCosine", limit: 0.99, actual: 0.9, level: "fail", passed: false };
    const completed = (...gates: readonly object[]) => ({ status: "Completed", report: { gates } });
    await record("failed", completed(gate));
    await record("warned", completed({ ...gate, level: "warn" }));
    await record("unrecorded", { status: "Completed" });
    await record("ungated", { status: "Completed" }, spec);
    await record("running", { status: "Optimizing" });
    const serving = (name: string) => {
      const named = pod("serving");
      const annotations = { "modeloptimization.dev/compression-job": name };
      return { ...named, metadata: { ...named.metadata, annotations } };
    };
    await untilDenied(() => asMallory(dryRun, serving("failed")), denials.models);
    await until("the API server has seen all jobs", async () =>
      /no model of CompressionJob "running", which is Optimizing\./.test(
        await asMallory(dryRun, serving("running")).catch(String),
      ),
    );
    await assert.rejects(create(asMallory, serving("failed")), denials.models);
    await assert.rejects(asMallory(dryRun, serving("unrecorded")), denials.unrecorded);
    await asMallory(dryRun, serving("warned"));
    await asMallory(dryRun, serving("ungated"));
    await asMallory(dryRun, pod("serving"));
  },
  "uses neither the operator's account nor the service's": async (installed) => {
    const { asAdmin, asMallory, findComponentPod } = installed;
    const own = pod("forged", { account: operator });
    await untilDenied(() => asMallory(dryRun, own), denials.accounts);
    const { spec } = own;
    const template = { metadata: { labels: { app: "x" } }, spec };
    const running = { ...template, spec: { ...spec, restartPolicy: "Always" } };
    const selector = { matchLabels: { app: "x" } };
    const jobTemplate = { spec: { template } };
    const type = "kubernetes.io/service-account-token";
    const annotations = { "kubernetes.io/service-account.name": operator };
    const mounting = (claimName: string) => {
      const volumes = [{ name: "data", persistentVolumeClaim: { claimName } }];
      return { ...pod("forged"), spec: { ...podSpec("default"), volumes } };
    };
    const metadata = { name: "forged" };
    const forged = [
      own,
      pod("forged", { account: service }),
      mounting(service),
      mounting("backups"),
      { apiVersion: "apps/v1", kind: "Deployment", spec: { selector, template: running } },
      { apiVersion: "apps/v1", kind: "ReplicaSet", spec: { selector, template: running } },
      { apiVersion: "batch/v1", kind: "Job", spec: { template } },
      { apiVersion: "batch/v1", kind: "CronJob", spec: { schedule: "@daily", jobTemplate } },
      { apiVersion: "v1", kind: "Secret", type, metadata: { ...metadata, annotations } },
    ];
    for (const object of forged) {
      await assert.rejects(create(asMallory, { metadata, ...object }), denials.accounts);
    }
    for (const component of ["operator", "service"]) {
      const account = `${fullname}-${component}`;
      const deployment = `deployment/${account}`;
      const name = await findComponentPod(component);
      await assert.rejects(asMallory(["exec", name, "--", "id"]), denials.accounts);
      await assert.rejects(asMallory(["create", "token", account]), denials.accounts);
      await assert.rejects(asMallory(["set", "image", deployment, "*=evil"]), denials.accounts);
      await asMallory(["rollout", "restart", deployment]);
    }
    for (const name of ["uninstall-x7x2q", "backup-29384720-x7x2q"]) {
      const entered = enter(asMallory, installed, `${fullname}-${name}`);
      await assert.rejects(entered, denials.accounts);
    }
    const copying = ["create", "job", "copy", `--from=cronjob/${fullname}-backup`];
    await assert.rejects(asMallory(copying), denials.accounts);
    const controller = "--as=system:serviceaccount:kube-system:cronjob-controller";
    await asAdmin([...copying, "--dry-run=server", controller]);
  },
};

test("who edits the namespace", { skip: clusterMissing || helmMissing }, async (t) => {
  const installed = await install(t);
  for (const [name, check] of Object.entries(checks)) await t.test(name, () => check(installed));
});
