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
import { everything, pushesToMain, trusting, trustPolicy } from "./chart-options.ts";
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
  "a variable in worker.pod is the workers', not the operator's",
  { skip: helmMissing },
  async () => {
    const env = [{ name: "PLACE", value: "$(NODE)" }];
    const rendered = await render({ values: { worker: { pod: { env } } } });
    const operator = JSON.stringify(
      find(rendered, "Deployment", "mos-model-optimization-operator"),
    );
    assert.ok(operator.includes("$$(NODE)"), operator);
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

test(
  "pods that uninstall, copy and test are labelled and annotated as those of the process",
  { skip: helmMissing },
  async () => {
    const inject = { "sidecar.example/inject": "false" };
    const ofOperator = { podLabels: { egress: "operator" }, podAnnotations: inject };
    const ofService = { podLabels: { egress: "service" }, podAnnotations: inject };
    const backup = { schedule: "0 3 * * *", existingClaim: "copies" };
    const values = { operator: ofOperator, service: { ...ofService, backup } };
    const rendered = await render({ values });
    for (const [kind, name, process] of [
      ["Job", "uninstall", "operator"],
      ["CronJob", "backup", "service"],
      ["Pod", "test", "service"],
    ] as const) {
      const text = JSON.stringify(find(rendered, kind, `mos-model-optimization-${name}`));
      assert.ok(text.includes(`"egress":"${process}"`), name);
      assert.ok(text.includes('"sidecar.example/inject":"false"'), name);
    }
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
