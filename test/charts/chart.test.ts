import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { settings as operatorSettings } from "../../operator/settings.ts";
import { chartValues } from "../../scripts/chart-values.ts";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { resourceLabels } from "../../src/contract/custom-resources/resource-labels.ts";
import { trustPolicy as trustPolicySchema } from "../../src/contract/people/trust-policy.ts";
import { settings as serviceSettings } from "../../src/service/settings/settings.ts";
import { readTargets } from "../../src/settings/read-targets.ts";
import { readTrustPolicy } from "../../src/service/settings/read-trust-policy.ts";
import { fullTarget } from "../support/full-target.ts";
import { helmMissing } from "../support/cluster/cluster-missing.ts";
import { everything, pushesToMain, trustPolicy } from "./chart-options.ts";
import { chartFolder, helm, type Manifest, render } from "./helm.ts";

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

/** A wrong value of an option, and how the schema names it. */
const wrong: readonly (readonly [string, object, RegExp])[] = [
  ["a digest", { image: { tag: "1@sha256:1" } }, /image\/tag/],
  ["a namespace", { namespaces: ["Team"] }, /namespaces\/0/],
  ["an openshift", { openshift: "yes" }, /openshift.*want boolean/],
  ["a label", { operator: { podLabels: { a: 1 } } }, /operator\/podLabels\/a/],
  ["an annotation", { service: { annotations: { a: true } } }, /service\/annotations\/a/],
  ["a variable", { service: { extraEnv: [{ value: "1" }] } }, /service\/extraEnv\/0.*name/],
  ["a volume", { service: { extraVolumes: {} } }, /service\/extraVolumes/],
  ["a kind of issuer", certManager({ kind: "Authority" }), /issuerRef\/kind/],
  ["an issuer", certManager({ kind: "Issuer" }), /issuerRef\.name: must name/],
  ["a host", { service: { ingress: { hosts: ["https://a"] } } }, /service\/ingress\/hosts\/0/],
  ["a route's host", { service: { httpRoute: { hostnames: ["A"] } } }, /httpRoute\/hostnames\/0/],
  ["a gateway", { service: { httpRoute: { parentRefs: [{}] } } }, /parentRefs\/0.*name/],
  ["an egress", { networkPolicy: { workerEgress: true } }, /networkPolicy\/workerEgress/],
  ["a network", proxy("10.0.0.0/99"), /service\/trustedProxies\/0/],
  ["an address", proxy("10.0.0"), /service\/trustedProxies\/0/],
  ["an IPv6 network", proxy("fd00::/129"), /service\/trustedProxies\/0/],
  ["a size", { service: { persistence: { size: "50GB" } } }, /service\/persistence\/size/],
  ["an amount", { service: { resources: { limits: { memory: "banana" } } } }, /limits\/memory/],
  ["a schedule", { service: { backup: { schedule: "nightly" } } }, /service\/backup\/schedule/],
  ["a priority", { service: { priorityClassName: 5 } }, /service\/priorityClassName/],
  [
    "a spread",
    { service: { topologySpreadConstraints: {} } },
    /service\/topologySpreadConstraints/,
  ],
];
const refusedByForm = wrong.map(
  ([name, values, message]) => [`${name} that is wrong`, values, message] as const,
);

function proxy(network: string) {
  return { service: { trustedProxies: [network] } };
}

function certManager(issuerRef: object) {
  return { service: { tls: { certManager: { issuerRef } } } };
}

const refused: readonly (readonly [string, unknown, RegExp])[] = [
  ["a misspelt value", { operater: {} }, /additional properties 'operater' not allowed/],
  ["a misspelt field", { operator: { replica: 2 } }, /operator.*'replica' not allowed/],
  [
    "a misspelt field of a target",
    { targets: [{ ...builtinTargets[0], gpus: 1 }] },
    /targets\/0.*'gpus' not allowed/,
  ],
  [
    "what is not a project",
    { service: { keepDays: { projects: { "Team A": {} } } } },
    /keepDays\.projects: Team A is not the name/,
  ],
  [
    "an address of the service without https://",
    { service: { publicUrl: "mos.example.com:8443" } },
    /publicUrl.*does not match pattern '\^https\?/s,
  ],
  ["a value out of range", { service: { port: 0 } }, /service\/port.*minimum/],
  [
    "a target that is there twice",
    { targets: [builtinTargets[0], builtinTargets[0]] },
    /targets: cpu is there twice/,
  ],
  [
    "a volume of a target that is a path of its node",
    withPod({ volumes: [{ name: "root", hostPath: { path: "/" } }] }),
    /targets\/0\/pod\/volumes\/0.*'hostPath' not allowed/,
  ],
  [
    "a variable of a target that the operator sets",
    withPod({ env: [{ name: "MOS_JOB_ID", value: "a" }] }),
    /pod.env of cpu: MOS_JOB_ID is set by the operator/,
  ],
  [
    "a label of a target that the operator sets",
    withPod({ labels: { "modeloptimization.dev/job-id": "a" } }),
    /pod.labels of cpu: modeloptimization.dev\/job-id is set by controllers/,
  ],
  [
    "a volume of a target without a kind",
    withPod({ volumes: [{ name: "models" }] }),
    /pod.volumes of cpu: models must have exactly one kind/,
  ],
  [
    "a mount over the worker's folder",
    withPod({ volumeMounts: [{ name: "models", mountPath: "/work/models" }] }),
    /pod.volumeMounts of cpu: \/work is a folder of the worker/,
  ],
  [
    "a variable of all targets that the operator sets",
    { worker: { pod: { env: [{ name: "MOS_JOB_ID", value: "a" }] } } },
    /worker: pod.env of all targets: MOS_JOB_ID is set by the operator/,
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
    "an App without an address for links",
    { service: { githubApp: { existingSecret: "github-app" } } },
    /githubApp\.existingSecret: needs service\.publicUrl/,
  ],
  [
    "a single sign-on without an address of the service",
    { service: { singleSignOn: { existingSecret: "single-sign-on" } } },
    /singleSignOn\.existingSecret: needs service\.publicUrl/,
  ],
  [
    "replicas on one volume",
    { service: { replicas: 2, s3: { existingSecret: "bucket" } } },
    /service\.replicas: more than 1 need service\.postgres/,
  ],
  ...refusedByForm,
  [
    "one port for workers and everybody",
    { service: { port: 8443, workerPort: 8443 } },
    /service\.workerPort: must be another port/,
  ],
  [
    "backups without a volume for them",
    { service: { backup: { schedule: "@daily" } } },
    /service\.backup\.existingClaim: must name the claim/,
  ],
  [
    "backups of records in PostgreSQL",
    {
      service: {
        backup: { schedule: "@daily", existingClaim: "backups" },
        postgres: { existingSecret: "database" },
      },
    },
    /service\.backup\.schedule: is of records on a volume/,
  ],
  [
    "a path of nodes for all pods",
    { worker: { pod: { volumes: [{ name: "root", hostPath: { path: "/" } }] } } },
    /worker\/pod\/volumes\/0.*'hostPath' not allowed/,
  ],
];

function withPod(pod: object) {
  return { targets: [{ ...builtinTargets[0], pod }] };
}

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

test(
  "the operator reads every field of a target of the values",
  { skip: helmMissing },
  async (t) => {
    const file = await configurationFile(t, { targets: [fullTarget] }, "targets");
    assert.deepEqual(await readTargets(file), [{ ...fullTarget, presets: {} }]);
  },
);

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
      const rendered = await render({ values: everything });
      const deployment = find(rendered, "Deployment", `compression-${component}`);
      const { env } = podTemplate.parse(deployment).spec.template.spec.containers[0];
      const own = env.filter(({ name }) => /^(MOS|OTEL)_/.test(name));
      const environment = Object.fromEntries(own.map(({ name, value }) => [name, value]));
      assert.deepEqual(
        Object.keys(environment).filter((name) => !Object.hasOwn(settings.shape, name)),
        [],
      );
      settings.parse({ ...environment, MOS_POD_NAME: "operator-0" });
    },
  );
}

test("the service keeps what projects have for their own days", { skip: helmMissing }, async () => {
  const service = find(await render({ values: everything }), "Deployment", "compression-service");
  const { env } = podTemplate.parse(service).spec.template.spec.containers[0];
  const { value } = env.find(({ name }) => name === "MOS_KEEP_DAYS") ?? {};
  assert.deepEqual(JSON.parse(value ?? ""), everything.service.keepDays);
});

test(
  "all workers get the service's authority and what worker.pod says",
  { skip: helmMissing },
  async () => {
    const operator = find(
      await render({ values: everything }),
      "Deployment",
      "compression-operator",
    );
    const { env } = podTemplate.parse(operator).spec.template.spec.containers[0];
    const { value } = env.find(({ name }) => name === "MOS_WORKER_POD") ?? {};
    const { volumes, volumeMounts } = everything.worker.pod;
    assert.deepEqual(JSON.parse(value ?? ""), {
      imagePullPolicy: "Always",
      env: [{ name: "NODE_EXTRA_CA_CERTS", value: "/etc/service-ca/ca.crt" }],
      volumes: [
        ...volumes,
        {
          name: "service-ca",
          secret: {
            secretName: "compression-service-tls",
            items: [{ key: "ca.crt", path: "ca.crt" }],
          },
        },
      ],
      volumeMounts: [
        ...volumeMounts,
        { name: "service-ca", mountPath: "/etc/service-ca", readOnly: true },
      ],
    });
  },
);

test(
  "a budget for disruptions is there where another operator stands by",
  { skip: helmMissing },
  async () => {
    const kinds = async (values: unknown) => (await render({ values })).map(({ kind }) => kind);
    assert.ok(!(await kinds({})).includes("PodDisruptionBudget"));
    assert.ok((await kinds({ operator: { replicas: 2 } })).includes("PodDisruptionBudget"));
  },
);

test("workers reach OpenShift's DNS behind its Service", { skip: helmMissing }, async () => {
  const networkPolicy = { enabled: true, workerEgress: { enabled: true } };
  const dnsPorts = async (openshift: boolean) => {
    const rendered = await render({ values: { openshift, networkPolicy } });
    const policy = find(rendered, "NetworkPolicy", "mos-model-optimization-worker");
    return [...JSON.stringify(policy).matchAll(/"port":(53\d*),"protocol":"UDP"/g)].map(
      ([, port]) => port,
    );
  };
  assert.deepEqual(await dnsPorts(false), ["53"]);
  assert.deepEqual(await dnsPorts(true), ["53", "5353"]);
});

test(
  "workers reach only a port of their own, and nobody else does",
  { skip: helmMissing },
  async () => {
    const service = { workerPort: 8443 };
    const networkPolicy = { enabled: true, workerEgress: { enabled: true } };
    const rendered = await render({ values: { service, networkPolicy } });
    const text = (kind: string, component: string) =>
      JSON.stringify(find(rendered, kind, `mos-model-optimization-${component}`));
    assert.match(text("Deployment", "operator"), /"value":"http:[^"]*:8443"/);
    const worker = `{"podSelector":{"matchExpressions":[{"key":"${resourceLabels.jobId}"`;
    const rules = text("NetworkPolicy", "service").split('{"ports":').slice(1);
    assert.equal(rules.length, 2);
    assert.ok(rules[0]?.startsWith(`[{"port":"workers"}],"from":[${worker}`), rules[0]);
    assert.ok(rules[1]?.startsWith('[{"port":"http"}]') && !rules[1].includes(worker), rules[1]);
    assert.match(text("NetworkPolicy", "worker"), /"ports":\[{"port":"workers"}\]/);
  },
);

test("changed targets restart those that read them", { skip: helmMissing }, async () => {
  const deployments = async (values: unknown) =>
    (await render({ values }))
      .filter(({ kind }) => kind === "Deployment")
      .map((object) => JSON.stringify(object));
  const before = await deployments({});
  const after = await deployments({ targets: builtinTargets.slice(0, 1) });
  assert.equal(before.length, 2);
  for (const [index, text] of after.entries()) assert.notEqual(text, before[index]);
});

test("a changed trust policy restarts only the service", { skip: helmMissing }, async () => {
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
  "the files of Secrets are where the service looks for them",
  { skip: helmMissing },
  async () => {
    const service = {
      publicUrl: "https://mos.example",
      githubApp: { existingSecret: "app" },
      singleSignOn: { existingSecret: "provider" },
      s3: { existingSecret: "bucket" },
    };
    assert.deepEqual(secretFiles(await render({ values: { service } })), {
      MOS_GITHUB_APP_FILE: "app: github-app.yaml",
      MOS_OIDC_FILE: "provider: single-sign-on.yaml",
      MOS_S3_FILE: "bucket: s3.yaml",
      MOS_FIRST_SIGN_IN_FILE: "mos-model-optimization-first-sign-in: secret",
    });
    assert.deepEqual(Object.keys(secretFiles(await render())), ["MOS_FIRST_SIGN_IN_FILE"]);
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

/** Secret and key of each variable that names a file of a Secret. */
function secretFiles(rendered: readonly Manifest[]): Record<string, string> {
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
  const named = env.map(({ name, value }) => [name, files.get(value)] as const);
  return Object.fromEntries(named.flatMap(([name, file]) => (file ? [[name, file]] : [])));
}

function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find(
    (manifest) => manifest.kind === kind && manifest.metadata.name === name,
  );
  assert.ok(found, `The chart makes no ${kind} "${name}"`);
  return found;
}

test(
  "each namespace that a release serves gets what works there",
  { skip: helmMissing },
  async () => {
    const values = { namespaces: ["team", "models"], networkPolicy: { enabled: true } };
    const manifests = await render({ namespace: "models", values });
    const inTeam = manifests.filter(({ metadata }) => metadata.namespace === "team");
    const name = "mos-model-optimization";
    assert.deepEqual(inTeam.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted(), [
      `NetworkPolicy ${name}-worker`,
      ...["Role", "RoleBinding"].flatMap((kind) => [
        `${kind} ${name}-operator`,
        `${kind} ${name}-service`,
      ]),
      `ServiceAccount ${name}-worker`,
    ]);
    assert.doesNotMatch(JSON.stringify(inTeam), /leases/);
    const all = JSON.stringify(await render({ values: { namespaces: "*" } }));
    assert.match(all, /"MOS_NAMESPACES","value":"\*"/);
    await assert.rejects(
      render({ namespace: "models", values: { namespaces: ["default"] } }),
      /namespaces: default cannot be served/,
    );
  },
);
