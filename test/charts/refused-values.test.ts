import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinTargets } from "../../src/contract/jobs/target.ts";
import { helmMissing } from "../support/cluster/cluster-missing.ts";
import { pushesToMain, trusting, trustPolicy } from "./chart-options.ts";
import { render } from "./helm.ts";

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

function claiming(claims: Readonly<Record<string, unknown>>) {
  return trusting({ claims: { ...pushesToMain.claims, ...claims } });
}

for (const [name, values, message] of refused) {
  test(`the chart refuses ${name}`, { skip: helmMissing }, async () => {
    await assert.rejects(render({ values }), message);
  });
}
