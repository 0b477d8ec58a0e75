import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { settings as operatorSettings } from "../../operator/settings.ts";
import { chartValues } from "../../scripts/chart-values.ts";
import { builtinTargets } from "../../src/contract/target.ts";
import { settings as serviceSettings } from "../../src/server/settings.ts";
import { readTargets } from "../../src/targets/read-targets.ts";
import { clusterMissing, helmMissing } from "../cluster/cluster-missing.ts";
import { clusterNamespace } from "../cluster/shared-cluster.ts";
import { chartFolder, helm, type Manifest, render } from "./helm.ts";

const everything = {
  imagePullSecrets: [{ name: "registry" }],
  operator: { replicas: 3, nodeSelector: { pool: "system" }, tolerations: [{ key: "system", operator: "Exists" }] },
  service: { type: "NodePort", persistence: { storageClass: "fast", keep: false }, affinity: { nodeAffinity: {} } },
  worker: {
    allowedRoots: ["/models", "/data/more"],
    volumes: [{ name: "models", persistentVolumeClaim: { claimName: "models" } }],
    volumeMounts: [{ name: "models", mountPath: "/models", readOnly: true }],
  },
  networkPolicy: { enabled: true, from: [{ namespaceSelector: {} }] },
  podMonitor: { enabled: true, labels: { release: "prometheus" } },
};

test("the chart passes Helm's own lint", { skip: helmMissing }, async () => {
  await helm(["lint", "--strict", chartFolder]);
});

test("the chart has the version of the package", { skip: helmMissing }, async () => {
  const versions = z.object({ version: z.string(), appVersion: z.string().optional() });
  const { version } = versions.parse(
    JSON.parse(await readFile(join(import.meta.dirname, "../../package.json"), "utf8")),
  );
  const text = await readFile(join(chartFolder, "Chart.yaml"), "utf8");
  assert.deepEqual(versions.parse(parse(text)), { version, appVersion: version });
});

const refused: readonly (readonly [string, unknown, RegExp])[] = [
  ["a misspelt value", { operater: {} }, /additional properties 'operater' not allowed/],
  ["a misspelt field", { operator: { replica: 2 } }, /operator.*'replica' not allowed/],
  ["a misspelt field of a target", { targets: [{ ...builtinTargets[0], gpus: 1 }] }, /targets\/0.*'gpus' not allowed/],
  ["a value out of range", { service: { port: 0 } }, /service\/port.*minimum/],
  ["no targets", { targets: [] }, /targets.*minItems/],
  ["a target that is there twice", { targets: [builtinTargets[0], builtinTargets[0]] }, /targets: cpu is there twice/],
  ["a folder that is not one", { worker: { allowedRoots: ["models"] } }, /allowedRoots\/0/],
];

for (const [name, values, message] of refused) {
  test(`the chart refuses ${name}`, { skip: helmMissing }, async () => {
    await assert.rejects(render({ values }), message);
  });
}

const accepted: readonly (readonly [string, unknown])[] = [
  ["its defaults", {}],
  ["every option", everything],
  ["no volume", { service: { persistence: { enabled: false } } }],
  ["a volume that exists", { service: { persistence: { existingClaim: "archive" } } }],
];

for (const [name, values] of accepted) {
  test(`an API server takes what the chart makes of ${name}`, { skip: clusterMissing || helmMissing }, async () => {
    const { cluster, namespace } = await clusterNamespace();
    const rendered = await render({ namespace, values });
    const items = rendered.filter(({ kind }) => kind !== "PodMonitor");
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    await cluster.kubectl(["apply", "--dry-run=server", "--validate=strict", "-n", namespace, "-f", "-"], list);
  });
}

test("the schema of the values takes what the chart's defaults are", { skip: helmMissing }, async () => {
  const defaults: unknown = parse(await readFile(join(chartFolder, "values.yaml"), "utf8"));
  assert.deepEqual(chartValues.parse(defaults), chartValues.parse({}));
});

test("the service reads the targets of the values", { skip: helmMissing }, async (t) => {
  const large = { ...builtinTargets[0], name: "large", recipe: { sharding: { maxShardBytes: 5_368_709_120 } } };
  const rendered = await render({ values: { targets: [large] } });
  const { data } = z
    .looseObject({ data: z.object({ "targets.yaml": z.string() }) })
    .parse(find(rendered, "ConfigMap", "mos-model-optimization-targets"));
  const folder = await mkdtemp(join(tmpdir(), "targets-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "targets.yaml");
  await writeFile(file, data["targets.yaml"]);
  assert.deepEqual(await readTargets(file), [large]);
});

const podTemplate = z.object({
  spec: z.object({
    template: z.object({
      spec: z.looseObject({
        securityContext: z.looseObject({}),
        containers: z.tuple([
          z.looseObject({
            securityContext: z.looseObject({}),
            env: z.array(z.object({ name: z.string(), value: z.string().optional() })),
          }),
        ]),
      }),
    }),
  }),
});

test("pods run without privileges, on a root that is read only", { skip: helmMissing }, async () => {
  const deployments = (await render()).filter(({ kind }) => kind === "Deployment");
  assert.equal(deployments.length, 2);
  for (const deployment of deployments) {
    const { securityContext, containers } = podTemplate.parse(deployment).spec.template.spec;
    assert.equal(securityContext["runAsNonRoot"], true);
    assert.deepEqual(securityContext["seccompProfile"], { type: "RuntimeDefault" });
    assert.deepEqual(containers[0].securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  }
});

const programs = [
  { component: "operator", settings: operatorSettings },
  { component: "service", settings: serviceSettings },
];

for (const { component, settings } of programs) {
  test(`the chart gives the ${component} settings that it knows`, { skip: helmMissing }, async () => {
    const rendered = await render({ name: "model-optimization", values: everything });
    const deployment = find(rendered, "Deployment", `model-optimization-${component}`);
    const { env } = podTemplate.parse(deployment).spec.template.spec.containers[0];
    const environment = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    assert.deepEqual(
      Object.keys(environment).filter((name) => !Object.hasOwn(settings.shape, name)),
      [],
    );
    settings.parse({ ...environment, MOS_POD_NAME: "operator-0" });
  });
}

test("a budget for disruptions is there where another operator stands by", { skip: helmMissing }, async () => {
  const kinds = async (values: unknown) => (await render({ values })).map(({ kind }) => kind);
  assert.ok(!(await kinds({})).includes("PodDisruptionBudget"));
  assert.ok((await kinds({ operator: { replicas: 2 } })).includes("PodDisruptionBudget"));
});

test("changed targets restart whoever reads them", { skip: helmMissing }, async () => {
  const deployments = async (values: unknown) =>
    (await render({ values })).filter(({ kind }) => kind === "Deployment").map((object) => JSON.stringify(object));
  const before = await deployments({});
  const after = await deployments({ targets: builtinTargets.slice(0, 1) });
  assert.equal(before.length, 2);
  for (const [index, text] of after.entries()) assert.notEqual(text, before[index]);
});

function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  assert.ok(found, `The chart makes no ${kind} "${name}"`);
  return found;
}
