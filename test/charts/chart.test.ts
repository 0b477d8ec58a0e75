import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { settings as operatorSettings } from "../../operator/settings.ts";
import { chartValues } from "../../scripts/chart-values.ts";
import { builtinTargets } from "../../src/contract/target.ts";
import { trustPolicy as trustPolicySchema } from "../../src/contract/trust-policy.ts";
import { settings as serviceSettings } from "../../src/service/settings.ts";
import { readTargets } from "../../src/settings/read-targets.ts";
import { readTrustPolicy } from "../../src/service/read-trust-policy.ts";
import { clusterMissing, helmMissing } from "../support/cluster/cluster-missing.ts";
import { createTestNamespace } from "../support/cluster/shared-cluster.ts";
import { chartFolder, helm, type Manifest, render } from "./helm.ts";

const issuer = "https://token.actions.githubusercontent.com";
const pushesToMain = {
  name: "main",
  issuer,
  claims: {
    repository_owner_id: 45,
    repository_id: 1_296_269,
    ref: "refs/heads/main",
    event_name: ["push", "schedule"],
  },
  scopes: ["jobs:write", "baselines:write"],
};
const trustPolicy = {
  issuers: [{ issuer, audience: "https://mos.example" }],
  policies: [pushesToMain],
};
const githubApp = {
  appId: 4_711_000,
  existingSecret: "github-app",
  publicUrl: "https://mos.example",
  apiUrl: "https://github.example/api/v3",
};

const singleSignOn = {
  issuer: "https://login.example",
  clientId: "service",
  existingSecret: "single-sign-on",
};

const s3 = { bucket: "models", endpoint: "http://minio.storage:9000", existingSecret: "bucket" };

const everything = {
  imagePullSecrets: [{ name: "registry" }],
  operator: {
    replicas: 3,
    nodeSelector: { pool: "system" },
    tolerations: [{ key: "system", operator: "Exists" }],
  },
  service: {
    type: "NodePort",
    trustPolicy,
    githubApp,
    singleSignOn,
    replicas: 3,
    postgres: { existingSecret: "database", key: "uri" },
    s3,
    sourceCredentials: { existingSecret: "sources" },
    keepDays: { jobs: 365, logs: 30 },
    persistence: { storageClass: "fast", keep: false },
    affinity: { nodeAffinity: {} },
  },
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
  [
    "a misspelt field of a target",
    { targets: [{ ...builtinTargets[0], gpus: 1 }] },
    /targets\/0.*'gpus' not allowed/,
  ],
  ["a value out of range", { service: { port: 0 } }, /service\/port.*minimum/],
  ["no targets", { targets: [] }, /targets.*minItems/],
  [
    "a target that is there twice",
    { targets: [builtinTargets[0], builtinTargets[0]] },
    /targets: cpu is there twice/,
  ],
  ["a folder that is not one", { worker: { allowedRoots: ["models"] } }, /allowedRoots\/0/],
  [
    "issuers over an unprotected network",
    trusting({}, [{ issuer: "http://issuer.example", audience: "mos" }]),
    /trustPolicy\/issuers\/0\/issuer/,
  ],
  [
    "an issuer that is there twice",
    trusting({}, [...trustPolicy.issuers, ...trustPolicy.issuers]),
    /issuers\[1\].*twice/,
  ],
  [
    "a policy of an unknown issuer",
    trusting({ issuer: "https://x.example" }),
    /policies\[0\]\.issuer: must be one of/,
  ],
  [
    "a policy without issuers",
    { service: { trustPolicy: { policies: [pushesToMain] } } },
    /policies\[0\]\.issuer/,
  ],
  [
    "a claim that no policy knows",
    claiming({ sub: "x" }),
    /policies\/0\/claims.*'sub' not allowed/,
  ],
  [
    "an owner's name",
    claiming({ repository_owner_id: "acme" }),
    /policies\/0\/claims\/repository_owner_id/,
  ],
  ["a scope that policies cannot give", trusting({ scopes: ["admin"] }), /policies\/0\/scopes\/0/],
  [
    "comparisons with any suite",
    trusting({
      scopes: ["reports:write"],
      report: { checkNames: "Compression", gates: { maxSizeRegression: 0.05 } },
    }),
    /policies\[0\]\.report\.suites: must be given/,
  ],
  [
    "baselines of any branch",
    claiming({ ref: undefined }),
    /policies\[0\]\.claims: must say which ref or environment/,
  ],
  [
    "baselines of any event",
    claiming({ event_name: undefined }),
    /policies\[0\]\.claims\.event_name: must be given/,
  ],
  [
    "baselines of pull requests",
    claiming({ event_name: "pull_*" }),
    /policies\[0\]\.claims\.event_name/,
  ],
  [
    "an App without a Secret",
    { service: { githubApp: { appId: 1 } } },
    /githubApp\.existingSecret: must name/,
  ],
  [
    "an App without an address for links",
    { service: { githubApp: { ...githubApp, publicUrl: "" } } },
    /githubApp\.publicUrl: must be/,
  ],
  [
    "a single sign-on without an address of the service",
    { service: { singleSignOn } },
    /singleSignOn\.issuer: needs clientId, existingSecret and service\.publicUrl/,
  ],
  [
    "a bucket without a Secret",
    { service: { s3: { bucket: "models" } } },
    /s3\.existingSecret: must name/,
  ],
  [
    "replicas on one volume",
    { service: { replicas: 2, s3 } },
    /service\.replicas: more than 1 need service\.postgres/,
  ],
  ["a bucket without a name", { service: { s3: { ...s3, bucket: "A" } } }, /s3\/bucket/],
  [
    "an App without a number",
    { service: { githubApp: { existingSecret: "app" } } },
    /githubApp\.appId: must be/,
  ],
  [
    "an App's name",
    { service: { githubApp: { ...githubApp, appId: "compression" } } },
    /githubApp\/appId/,
  ],
  [
    "an App at no address",
    { service: { githubApp: { ...githubApp, apiUrl: "github" } } },
    /githubApp\/apiUrl/,
  ],
];

function trusting(
  policy: Readonly<Record<string, unknown>>,
  issuers: readonly unknown[] = trustPolicy.issuers,
) {
  return { service: { trustPolicy: { issuers, policies: [{ ...pushesToMain, ...policy }] } } };
}

function claiming(claims: Readonly<Record<string, unknown>>) {
  return trusting({ claims: { ...pushesToMain.claims, ...claims } });
}

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
  test(
    `an API server takes what the chart makes of ${name}`,
    { skip: clusterMissing || helmMissing },
    async () => {
      const { cluster, namespace } = await createTestNamespace();
      const rendered = await render({ namespace, values });
      const items = rendered.filter(({ kind }) => kind !== "PodMonitor");
      const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
      await cluster.kubectl(
        ["apply", "--dry-run=server", "--validate=strict", "-n", namespace, "-f", "-"],
        list,
      );
    },
  );
}

test(
  "the schema of the values takes what the chart's defaults are",
  { skip: helmMissing },
  async () => {
    const defaults: unknown = parse(await readFile(join(chartFolder, "values.yaml"), "utf8"));
    assert.deepEqual(chartValues.parse(defaults), chartValues.parse({}));
  },
);

test("the service reads the targets of the values", { skip: helmMissing }, async (t) => {
  const large = {
    ...builtinTargets[0],
    name: "large",
    recipe: { sharding: { maxShardBytes: 5_368_709_120 } },
  };
  const file = await configurationFile(t, { targets: [large] }, "targets");
  assert.deepEqual(await readTargets(file), [large]);
});

test("the service reads the trust policy of the values", { skip: helmMissing }, async (t) => {
  const claims = {
    repository_owner_id: 9_007_199_254_740_991,
    repository_id: "0123",
    ref: "yes",
    ref_protected: true,
  };
  const policy = { ...pushesToMain, claims: { ...pushesToMain.claims, ...claims } };
  const values = { issuers: trustPolicy.issuers, policies: [policy] };
  const file = await configurationFile(t, { service: { trustPolicy: values } }, "trust-policy");
  assert.deepEqual(await readTrustPolicy(file), trustPolicySchema.parse(values));
});

/** A file as the service finds it in its container, from the ConfigMap of the name. */
async function configurationFile(t: TestContext, values: unknown, name: string): Promise<string> {
  const rendered = await render({ values });
  const { data } = z
    .looseObject({ data: z.record(z.string(), z.string()) })
    .parse(find(rendered, "ConfigMap", `mos-model-optimization-${name}`));
  const folder = await mkdtemp(join(tmpdir(), "configuration-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, `${name}.yaml`);
  await writeFile(file, data[`${name}.yaml`] ?? "");
  return file;
}

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

test(
  "pods run without privileges, on a root that is read only",
  { skip: helmMissing },
  async () => {
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
  },
);

const programs = [
  { component: "operator", settings: operatorSettings },
  { component: "service", settings: serviceSettings },
];

for (const { component, settings } of programs) {
  test(
    `the chart gives the ${component} settings that it knows`,
    { skip: helmMissing },
    async () => {
      const rendered = await render({ name: "model-optimization", values: everything });
      const deployment = find(rendered, "Deployment", `model-optimization-${component}`);
      const { env } = podTemplate.parse(deployment).spec.template.spec.containers[0];
      const environment = Object.fromEntries(env.map(({ name, value }) => [name, value]));
      assert.deepEqual(
        Object.keys(environment).filter((name) => !Object.hasOwn(settings.shape, name)),
        [],
      );
      settings.parse({ ...environment, MOS_POD_NAME: "operator-0" });
    },
  );
}

test(
  "a budget for disruptions is there where another operator stands by",
  { skip: helmMissing },
  async () => {
    const kinds = async (values: unknown) => (await render({ values })).map(({ kind }) => kind);
    assert.ok(!(await kinds({})).includes("PodDisruptionBudget"));
    assert.ok((await kinds({ operator: { replicas: 2 } })).includes("PodDisruptionBudget"));
  },
);

test("changed targets restart whoever reads them", { skip: helmMissing }, async () => {
  const deployments = async (values: unknown) =>
    (await render({ values }))
      .filter(({ kind }) => kind === "Deployment")
      .map((object) => JSON.stringify(object));
  const before = await deployments({});
  const after = await deployments({ targets: builtinTargets.slice(0, 1) });
  assert.equal(before.length, 2);
  for (const [index, text] of after.entries()) assert.notEqual(text, before[index]);
});

test("a changed trust policy restarts the service alone", { skip: helmMissing }, async () => {
  const templates = async (values: unknown) => {
    const rendered = await render({ values });
    return ["operator", "service"].map((component) =>
      JSON.stringify(find(rendered, "Deployment", `mos-model-optimization-${component}`)["spec"]),
    );
  };
  const [operator, service] = await templates(trusting({}));
  const [sameOperator, otherService] = await templates(trusting({ name: "other" }));
  assert.equal(sameOperator, operator);
  assert.notEqual(otherService, service);
});

test(
  "the GitHub App's files are where the service looks for them",
  { skip: helmMissing },
  async () => {
    const service = async (options: unknown) =>
      githubAppEnvironment(await render({ values: { service: { githubApp: options } } }));
    assert.deepEqual(await service(githubApp), {
      MOS_GITHUB_APP_ID: "4711000",
      MOS_GITHUB_APP_KEY_FILE: "github-app: private-key.pem",
      MOS_GITHUB_WEBHOOK_SECRET_FILE: "github-app: webhook-secret",
      MOS_GITHUB_API_URL: "https://github.example/api/v3",
      MOS_PUBLIC_URL: "https://mos.example",
    });
    const { existingSecret, publicUrl } = githubApp;
    assert.deepEqual(await service({ appId: "7", existingSecret, publicUrl, webhook: false }), {
      MOS_GITHUB_APP_ID: "7",
      MOS_GITHUB_APP_KEY_FILE: "github-app: private-key.pem",
      MOS_GITHUB_API_URL: "https://api.github.com",
      MOS_PUBLIC_URL: publicUrl,
    });
    assert.deepEqual(await service({}), {});
  },
);

const serviceDeployment = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.tuple([
          z.object({
            env: z.array(z.object({ name: z.string(), value: z.string() })),
            volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })),
          }),
        ]),
        volumes: z.array(
          z.object({
            name: z.string(),
            secret: z
              .object({
                secretName: z.string(),
                items: z.array(z.object({ key: z.string(), path: z.string() })),
              })
              .optional(),
          }),
        ),
      }),
    }),
  }),
});

/** What the service is told of the GitHub App, with Secret and key for the path of a file. */
function githubAppEnvironment(rendered: readonly Manifest[]): Record<string, string> {
  const { spec } = serviceDeployment.parse(
    find(rendered, "Deployment", "mos-model-optimization-service"),
  ).spec.template;
  const [{ env, volumeMounts }] = spec.containers;
  const files = new Map<string, string>();
  for (const { name, secret } of spec.volumes) {
    const { mountPath } = volumeMounts.find((mount) => mount.name === name) ?? {};
    for (const { key, path } of secret?.items ?? [])
      files.set(`${mountPath}/${path}`, `${secret?.secretName}: ${key}`);
  }
  const ofApp = env.filter(({ name }) => /^MOS_(GITHUB|PUBLIC)_/.test(name));
  return Object.fromEntries(ofApp.map(({ name, value }) => [name, files.get(value) ?? value]));
}

function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find(
    (manifest) => manifest.kind === kind && manifest.metadata.name === name,
  );
  assert.ok(found, `The chart makes no ${kind} "${name}"`);
  return found;
}
