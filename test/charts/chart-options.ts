import { fullTarget } from "../support/full-target.ts";

const issuer = "https://token.actions.githubusercontent.com";
export const pushesToMain = {
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
export const trustPolicy = {
  issuers: [{ issuer, audience: "https://mos.example" }],
  policies: [pushesToMain],
};
/** Values with a trust policy: its fields are those of `pushesToMain` but for these. */
export function trusting(
  policy: Readonly<Record<string, unknown>>,
  issuers: readonly unknown[] = trustPolicy.issuers,
) {
  return { service: { trustPolicy: { issuers, policies: [{ ...pushesToMain, ...policy }] } } };
}

/** What the pods of a process of ours take. */
const podOptions = {
  podLabels: { team: "models" },
  podAnnotations: { "sidecar.example/inject": "false" },
  extraEnv: [{ name: "HTTPS_PROXY", value: "http://proxy:3128" }],
  resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { memory: "2Gi" } },
  nodeSelector: { pool: "system" },
  tolerations: [{ key: "system", operator: "Exists" }],
  affinity: { nodeAffinity: {} },
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway" },
  ],
  priorityClassName: "system-cluster-critical",
};

const labels = { release: "prometheus" };

/** Every option that can be given at once. */
export const everything = {
  targets: [fullTarget],
  fullnameOverride: "compression",
  global: { region: "north" },
  openshift: true,
  namespaces: ["kube-public"],
  image: { ...images("service"), tag: `1@sha256:${"0".repeat(64)}`, pullPolicy: "Always" },
  imagePullSecrets: [{ name: "registry" }],
  crds: { enabled: true, keep: false },
  operator: {
    replicas: 3,
    deadlineSeconds: 3600,
    podStartSeconds: 60,
    jobTtlSeconds: 600,
    resourceTtlSeconds: 86_400,
    ...podOptions,
  },
  service: {
    type: "NodePort",
    port: 443,
    workerPort: 8443,
    ipFamilyPolicy: "PreferDualStack",
    ipFamilies: ["IPv4"],
    annotations: { "lb.example/internal": "true" },
    tls: {
      ca: true,
      certManager: {
        issuerRef: { name: "internal", kind: "ClusterIssuer", group: "cert-manager.io" },
        dnsNames: ["mos.example"],
      },
    },
    ingress: {
      className: "nginx",
      annotations: { "ingress.example/size": "0" },
      hosts: ["mos.example"],
      tlsSecret: "public-tls",
    },
    httpRoute: {
      annotations: { "gateway.example/size": "0" },
      parentRefs: [{ name: "public", namespace: "gateways" }],
      hostnames: ["*.mos.example"],
    },
    maxModelBytes: 1_000_000,
    quotas: { storedBytes: 2_000_000 },
    trustedProxies: ["10.0.0.0/8"],
    allowPrivateAddresses: true,
    resourceTtlSeconds: 60,
    publicUrl: "https://mos.example",
    serviceAccountCallers: true,
    trustPolicy,
    githubApp: { existingSecret: "github-app" },
    singleSignOn: { existingSecret: "single-sign-on" },
    replicas: 3,
    postgres: { existingSecret: "database", key: "uri" },
    s3: { existingSecret: "bucket" },
    sourceCredentials: { existingSecret: "sources" },
    keepDays: {
      jobs: 365,
      logs: 30,
      artifacts: 30,
      projects: { "team-a": { jobs: 30, logs: "forever" }, "team-b": { models: 7 } },
    },
    extraVolumes: [{ name: "extra", emptyDir: {} }],
    extraVolumeMounts: [{ name: "extra", mountPath: "/extra" }],
    ...podOptions,
  },
  worker: {
    image: images("worker"),
    allowedRoots: ["/models", "/data/more"],
    pod: {
      volumes: [{ name: "models", persistentVolumeClaim: { claimName: "models" } }],
      volumeMounts: [{ name: "models", mountPath: "/models", readOnly: true }],
    },
  },
  admission: { models: true },
  networkPolicy: {
    enabled: true,
    from: [{ namespaceSelector: {} }],
    workerEgress: {
      enabled: true,
      to: [{ to: [{ namespaceSelector: {} }], ports: [{ port: 9000 }] }],
    },
  },
  monitoring: { prometheus: true, grafana: true, labels },
};

function images(name: string) {
  return { repository: `registry.example/${name}`, tag: "1" };
}

/** Options that stand in for others of {@link everything}. */
export const alternatives = {
  "its defaults": {},
  "all namespaces": { namespaces: "*", networkPolicy: { enabled: true } },
  "no volume": { service: { persistence: { enabled: false } } },
  "a volume of its own": {
    service: { persistence: { enabled: true, size: "1Gi", storageClass: "fast", keep: false } },
  },
  "a volume that is copied": {
    service: { backup: { schedule: "0 3 * * *", existingClaim: "backups", keep: 3 } },
  },
  "a volume that exists": { service: { persistence: { existingClaim: "archive" } } },
  "Secrets that exist": {
    service: {
      tls: { existingSecret: "tls" },
      firstSignIn: { enabled: false, existingSecret: "sign-in" },
    },
    worker: { image: { tag: `@sha256:${"1".repeat(64)}` } },
  },
  "a GitHub App on one volume": {
    service: { publicUrl: "https://mos.example", githubApp: { existingSecret: "github-app" } },
  },
};
