import { z } from "zod";
import { builtinTargets, target } from "../src/contract/target.ts";
import { secureUrl } from "../src/contract/secure-url.ts";
import { trustPolicy } from "../src/contract/trust-policy.ts";
import { settings } from "../src/service/settings.ts";

/** An object whose shape the API server checks. */
const kubernetesObject = z.record(z.string(), z.unknown());
const quantities = z.record(z.string(), z.union([z.string(), z.number()]));

const image = (repository: string) =>
  z.strictObject({
    repository: z.string().min(1).default(repository),
    tag: z.string().default("").describe("Without it the chart's appVersion."),
    pullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).default("IfNotPresent"),
  });

const resources = (requests: z.input<typeof quantities>, limits: z.input<typeof quantities>) =>
  z.strictObject({ requests: quantities.default(requests), limits: quantities.default(limits) });

const placement = {
  nodeSelector: z.record(z.string(), z.string()).default({}),
  tolerations: z.array(kubernetesObject).default([]),
  affinity: kubernetesObject.default({}),
};

const aYear = 31_536_000;
const seconds = z.int().min(1).max(aYear);

const operator = z
  .strictObject({
    replicas: z.int().min(1).max(5).default(1).describe("One of them leads, the others stand by."),
    deadlineSeconds: seconds
      .default(86_400)
      .describe("Longest time of a job, and of one that names none."),
    podStartSeconds: seconds
      .default(600)
      .describe(
        "Time after which a worker pod that cannot start fails its job: a missing image or volume.",
      ),
    jobTtlSeconds: z
      .int()
      .min(60)
      .max(aYear)
      .default(3600)
      .describe(
        "Seconds that Jobs and pods of finished work are kept; a CompressionJob is not deleted with them.",
      ),
    resources: resources({ cpu: "50m", memory: "128Mi" }, { memory: "512Mi" }).prefault({}),
    ...placement,
  })
  .prefault({})
  .describe(
    "The operator runs CompressionJobs and Batches as Jobs and pods of the release's namespace.",
  );

const persistence = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe("Without it everything is lost when the service's pod ends."),
    size: z.string().default("50Gi"),
    storageClass: z.string().default("").describe("Without it the cluster's default."),
    existingClaim: z
      .string()
      .default("")
      .describe("Name of a claim to use instead of one of the chart's."),
    keep: z.boolean().default(true).describe("Keep the claim when the release is uninstalled."),
  })
  .prefault({})
  .describe("Volume of the history, models and artifacts; none with both postgres and s3.");

const s3 = z
  .strictObject({
    bucket: z
      .union([z.literal(""), settings.shape.MOS_S3_BUCKET.unwrap()])
      .default("")
      .describe("Bucket of models and artifacts; without it they are on the volume."),
    endpoint: settings.shape.MOS_S3_ENDPOINT,
    region: settings.shape.MOS_S3_REGION,
    pathStyle: z
      .boolean()
      .default(true)
      .describe("Whether addresses have the bucket in their path, else in their host."),
    existingSecret: z
      .string()
      .default("")
      .describe("Name of a Secret with the keys access-key-id and secret-access-key."),
  })
  .prefault({})
  .describe("An S3 server that keeps models and artifacts; workers reach it too.");

const postgres = z
  .strictObject({
    existingSecret: z
      .string()
      .default("")
      .describe("Name of a Secret; without it the history is in a file on the volume."),
    key: z
      .string()
      .min(1)
      .default("url")
      .describe("Key of the database's URL, such as postgres://user:password@host:5432/name."),
  })
  .prefault({})
  .describe("A PostgreSQL database of the history, for this release alone.");

const sourceCredentials = z
  .strictObject({
    existingSecret: z
      .string()
      .default("")
      .describe("Name of a Secret with the key source-credentials.yaml (docs/storage.md)."),
  })
  .prefault({})
  .describe("Credentials for models of s3://, gs:// and hf://.");

const { issuers, policies } = trustPolicy.shape;
const trust = z
  .strictObject({
    issuers: z.array(issuers.element).max(100).default([]),
    policies: policies.default([]),
  })
  .prefault({})
  .describe(
    "Whose identity tokens are exchanged for access tokens (docs/trust-policy.md); nobody's without issuers.",
  );

const publicUrl = z.union([z.literal(""), z.url({ protocol: /^https?$/ })]).default("");

const githubApp = z
  .strictObject({
    appId: z
      .union([z.int().min(1), z.string().regex(/^\d*$/)])
      .default("")
      .describe("The App's number."),
    apiUrl: settings.shape.MOS_GITHUB_API_URL.describe(
      "That of GitHub Enterprise Server ends in /api/v3.",
    ),
    publicUrl: publicUrl.describe("The same as `service.publicUrl`, which goes before it."),
    existingSecret: z
      .string()
      .default("")
      .describe("Name of a Secret with the keys private-key.pem and webhook-secret."),
    webhook: z
      .boolean()
      .default(true)
      .describe(
        "Whether the Secret has the key webhook-secret; without it check runs have no buttons.",
      ),
  })
  .prefault({})
  .describe(
    "The GitHub App that writes check runs for steps that do not wait; none without a number.",
  );

const singleSignOn = z
  .strictObject({
    issuer: z
      .union([z.literal(""), secureUrl])
      .default("")
      .describe("The OpenID Connect provider's address."),
    clientId: z.string().default("").describe("The provider's name of the service."),
    existingSecret: z
      .string()
      .default("")
      .describe("Name of a Secret with the key client-secret, which the provider gave."),
    scopes: settings.shape.MOS_OIDC_SCOPES.describe("Scopes to ask for, separated by spaces."),
    groupsClaim: settings.shape.MOS_OIDC_GROUPS_CLAIM.describe("Claim with a person's groups."),
  })
  .prefault({})
  .describe(
    "Where people sign in to the dashboard, which needs publicUrl; by links alone without an issuer.",
  );

function keptDays(what: string) {
  return z.int().min(0).max(36_500).default(0).describe(what);
}

const keepDays = z
  .strictObject({
    jobs: keptDays("Jobs and batches after their end, with all that they have."),
    logs: keptDays("Logs after their job's end."),
    artifacts: keptDays("Artifacts after their job's end."),
    models: keptDays("Uploaded models after a job last named them."),
  })
  .prefault({})
  .describe("Days for which the history and files are kept; 0 keeps them for good.");

const service = z
  .strictObject({
    replicas: z
      .int()
      .min(1)
      .max(10)
      .default(1)
      .describe("More than one need a database (postgres) and a bucket (s3)."),
    type: z.enum(["ClusterIP", "NodePort", "LoadBalancer"]).default("ClusterIP"),
    port: z.int().min(1).max(65_535).default(8080),
    maxModelBytes: z
      .int()
      .min(1)
      .default(64 * 1024 ** 3)
      .describe("Largest model, bytes."),
    quotaBytes: z
      .int()
      .min(1)
      .default(1024 ** 4)
      .describe("Bytes of a project's uploads and artifacts."),
    keepDays,
    trustedProxies: z
      .array(z.string().regex(/^[0-9a-fA-F.:/]+$/))
      .default([])
      .describe(
        "Addresses and networks of the ingress: X-Forwarded-For counts in their requests alone.",
      ),
    allowPrivateAddresses: z
      .boolean()
      .default(false)
      .describe(
        "Whether models may come from http:// and from addresses that are not on the public internet.",
      ),
    resourceTtlSeconds: z
      .int()
      .min(0)
      .max(aYear)
      .default(86_400)
      .describe(
        "Seconds after its end at which the resource of a REST request is deleted; the history stays.",
      ),
    publicUrl: publicUrl.describe(
      "Address at which people reach the service, for links and for cookies that need TLS.",
    ),
    trustPolicy: trust,
    githubApp,
    singleSignOn,
    postgres,
    s3,
    sourceCredentials,
    persistence,
    resources: resources({ cpu: "100m", memory: "256Mi" }, { memory: "1Gi" }).prefault({}),
    ...placement,
  })
  .prefault({})
  .describe(
    "The service answers the REST interface and keeps history, logs, models and artifacts.",
  );

const worker = z
  .strictObject({
    image: image("model-optimization-worker").prefault({}),
    allowedRoots: z
      .array(z.string().regex(/^\/[^:]*$/))
      .default([])
      .describe("Folders of the worker's container under which file:// models may lie."),
    volumes: z
      .array(kubernetesObject)
      .default([])
      .describe("Volumes that hold these folders, as in a pod's spec."),
    volumeMounts: z.array(kubernetesObject).default([]),
  })
  .prefault({})
  .describe("Pods that run the jobs. Their resources and placement are the target's.");

/** Values of the Helm chart. `values.yaml` and `values.schema.json` are made of it. */
export const chartValues = z.strictObject({
  fullnameOverride: z
    .string()
    .regex(/^([a-z]([a-z0-9-]{0,38}[a-z0-9])?)?$/)
    .default("")
    .describe("Prefix of all names instead of one from the release's."),
  global: kubernetesObject
    .optional()
    .describe("Values of a chart that this one is a part of; not read."),
  image: image("model-optimization-service")
    .prefault({})
    .describe("Image of the service and the operator."),
  imagePullSecrets: z
    .array(z.strictObject({ name: z.string().min(1) }))
    .default([])
    .describe("Secrets with which all images are pulled."),
  crds: z
    .strictObject({
      enabled: z
        .boolean()
        .default(true)
        .describe("Whether the release has the custom resource definitions."),
      keep: z
        .boolean()
        .default(true)
        .describe("Keep them, and with them every job, when it is uninstalled."),
    })
    .prefault({})
    .describe("A cluster has them once: of several releases one has them."),
  targets: z
    .array(target)
    .min(1)
    .default([...builtinTargets])
    .describe("Hardware profiles that jobs name, in the form of the answer to GET /v1/targets."),
  operator,
  service,
  worker,
  networkPolicy: z
    .strictObject({
      enabled: z.boolean().default(false),
      from: z
        .array(kubernetesObject)
        .default([])
        .describe(
          "Peers that may reach the service and the metrics, besides the workers, as in a NetworkPolicy.",
        ),
    })
    .prefault({})
    .describe(
      "Nothing reaches workers, and only those named here reach the service and the operator.",
    ),
  podMonitor: z
    .strictObject({
      enabled: z.boolean().default(false),
      interval: z.string().default("30s"),
      labels: z
        .record(z.string(), z.string())
        .default({})
        .describe("Labels by which Prometheus finds it."),
    })
    .prefault({})
    .describe("Has the Prometheus operator scrape /metrics of the service and the operator."),
  prometheusRule: z
    .strictObject({
      enabled: z.boolean().default(false),
      labels: z
        .record(z.string(), z.string())
        .default({})
        .describe("Labels by which Prometheus finds it."),
    })
    .prefault({})
    .describe("Alerts (docs/alerts.md) on what the PodMonitor has Prometheus scrape."),
  grafanaDashboard: z
    .strictObject({
      enabled: z.boolean().default(false),
      labels: z
        .record(z.string(), z.string())
        .default({ grafana_dashboard: "1" })
        .describe("Labels by which Grafana's sidecar finds it."),
    })
    .prefault({})
    .describe("A ConfigMap with a Grafana dashboard of the same metrics."),
});
