import { z } from "zod";
import { trustPolicy } from "../src/contract/people/trust-policy.ts";
import { quotaFields } from "../src/service/settings/quota-settings.ts";
import { keptDays } from "../src/service/settings/storage-settings.ts";
import { quantity } from "../src/contract/text/kubernetes-names.ts";
import { aYear, named, pods, resources, stringMap } from "./chart-pod-values.ts";

const persistence = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe("Without it everything is lost when the service's pod ends."),
    size: quantity.default("50Gi"),
    storageClass: z.string().default("").describe("Without it the cluster's default."),
    existingClaim: z
      .string()
      .default("")
      .describe("Name of a claim to use instead of one of the chart's."),
    keep: z.boolean().default(true).describe("Keep the claim when the release is uninstalled."),
  })
  .prefault({})
  .describe("Volume of the history, models and artifacts; none with both postgres and s3.");

const backup = z
  .strictObject({
    schedule: z
      .string()
      .regex(/^(@(hourly|daily|weekly|monthly)|[0-9A-Za-z*,/?-]+( [0-9A-Za-z*,/?-]+){4})?$/)
      .default("")
      .describe("When, as in a CronJob, such as 0 3 * * *; never without."),
    existingClaim: z.string().default("").describe("Claim of the volume that the copies lie on."),
    keep: z.int().min(1).max(1000).default(7).describe("How many of the newest are kept."),
  })
  .prefault({})
  .describe("Copies of a volume's history, models and artifacts (docs/backup.md).");

/** As in `MOS_TRUSTED_PROXIES`. */
const network = z.union([z.ipv4(), z.cidrv4(), z.ipv6(), z.cidrv6()]);

const s3 = z
  .strictObject({
    existingSecret: z
      .string()
      .default("")
      .describe("Name of a Secret with the key s3.yaml; without it files are on the volume."),
  })
  .prefault({})
  .describe("A bucket that keeps models and artifacts (docs/storage.md); workers reach it too.");

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
  .describe("A PostgreSQL database of the history, only for this release.");

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
    issuers: z.array(issuers.element).max(100).exactOptional(),
    policies: policies.exactOptional(),
  })
  .default({})
  .describe(
    "Whose identity tokens are exchanged for access tokens, by issuers and policies (docs/trust-policy.md); nobody's without.",
  );

/** By a pattern: `host:8443` is a URI too, and a JSON schema cannot ask for a scheme. */
const publicUrl = z
  .union([z.literal(""), z.url({ protocol: /^https?$/ }).regex(/^https?:\/\/[^\s/?#]+\/?$/)])
  .default("");

const githubApp = z
  .strictObject({
    existingSecret: z
      .string()
      .default("")
      .describe("Name of a Secret with the key github-app.yaml (docs/github-action.md)."),
  })
  .prefault({})
  .describe(
    "The GitHub App that writes check runs for steps that do not wait, which needs publicUrl.",
  );

const singleSignOn = z
  .strictObject({
    existingSecret: z
      .string()
      .default("")
      .describe("Name of a Secret with the key single-sign-on.yaml (docs/people.md)."),
  })
  .prefault({})
  .describe(
    "Where people sign in to the dashboard, which needs publicUrl; without a Secret only by links.",
  );

const tls = z
  .strictObject({
    existingSecret: z
      .string()
      .default("")
      .describe(
        "Name of a Secret with the keys tls.crt and tls.key, for the host names that certManager lists too.",
      ),
    ca: z
      .boolean()
      .default(true)
      .describe(
        "Whether the Secret has the key ca.crt, which workers trust; else a public authority signs.",
      ),
    certManager: z
      .strictObject({
        issuerRef: z
          .strictObject({
            name: z.string().exactOptional(),
            kind: z.enum(["Issuer", "ClusterIssuer"]).exactOptional(),
            group: z.string().exactOptional(),
          })
          .default({})
          .describe(
            "Issuer of cert-manager that makes the Secret, for the Service's names in the cluster.",
          ),
        dnsNames: z.array(z.string().min(1)).default([]).describe("More names."),
      })
      .prefault({}),
  })
  .prefault({})
  .describe("Has the service answer by https; without a Secret it answers by http.");

const host = z.string().regex(/^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/);

const ingress = z
  .strictObject({
    className: z.string().default("").describe("Without it the cluster's default."),
    annotations: stringMap.default({}),
    hosts: z.array(host).default([]).describe("Host names of requests; no Ingress without one."),
    tlsSecret: z.string().default("").describe("Secret with the certificate of the ingress."),
  })
  .prefault({})
  .describe("An Ingress that leads to the service.");

const httpRoute = z
  .strictObject({
    annotations: stringMap.default({}),
    parentRefs: z
      .array(named)
      .default([])
      .describe("Gateways, as in an HTTPRoute; no route without one."),
    hostnames: z.array(host).default([]).describe("Host names of requests; without it all."),
  })
  .prefault({})
  .describe("An HTTPRoute of the Gateway API that leads to the service.");

const firstSignIn = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe("Whether the release has a Secret that signs the first administrator in once."),
    existingSecret: z
      .string()
      .default("")
      .describe(
        "Name of a Secret with the key secret, 43 letters, digits, - or _, instead of one of the chart's.",
      ),
  })
  .prefault({})
  .describe("How the first administrator signs in to the dashboard.");

const quotas = z.strictObject(
  Object.fromEntries(
    Object.entries(quotaFields.shape).map(([name, field]) => [
      name,
      field
        .unwrap()
        .exactOptional()
        .describe(field.description ?? ""),
    ]),
  ),
);

export const service = z
  .strictObject({
    replicas: z
      .int()
      .min(1)
      .max(10)
      .default(1)
      .describe("More than one need a database (postgres) and a bucket (s3)."),
    type: z.enum(["ClusterIP", "NodePort", "LoadBalancer"]).default("ClusterIP"),
    port: z.int().min(1).max(65_535).default(8080),
    workerPort: z
      .int()
      .min(0)
      .max(65_535)
      .default(0)
      .describe("Port of its own for workers; 0 for the same port. Change it while no job runs."),
    ipFamilyPolicy: z
      .enum(["", "SingleStack", "PreferDualStack", "RequireDualStack"])
      .default("")
      .describe("Of the Service; by default it has one family, the cluster's first."),
    ipFamilies: z
      .array(z.enum(["IPv4", "IPv6"]))
      .default([])
      .describe("Of the Service, in order."),
    annotations: stringMap.default({}).describe("Annotations of the Service."),
    tls,
    ingress,
    httpRoute,
    firstSignIn,
    serviceAccountCallers: z
      .boolean()
      .default(false)
      .describe("Whether ServiceAccounts call it with their tokens, as far as their Roles allow."),
    maxModelBytes: z
      .int()
      .min(1)
      .default(64 * 1024 ** 3)
      .describe("Largest model, bytes."),
    quotas: quotas
      .default({})
      .describe("What a project may use, such as {storedBytes: 1000000000}; else as the service."),
    keepDays: keptDays
      // Helm names the field of a wrong key wrongly: the template checks the names of projects.
      .extend({
        projects: z.record(z.string(), keptDays.omit({ projects: true })).exactOptional(),
      })
      .default({})
      .describe(
        "Days for which the history and files are kept, such as {jobs: 365, projects: {team-a: {logs: 7}}}; for good without.",
      ),
    trustedProxies: z
      .array(network)
      .default([])
      .describe(
        "Addresses and networks of the ingress: X-Forwarded-For counts only in their requests.",
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
      "Address at which people reach the service, without a path, for links and cookies that " +
        "need TLS.",
    ),
    trustPolicy: trust,
    githubApp,
    singleSignOn,
    postgres,
    s3,
    sourceCredentials,
    persistence,
    backup,
    resources: resources({ cpu: "100m", memory: "256Mi" }, { memory: "1Gi" }).prefault({}),
    ...pods,
    extraVolumes: z.array(named).default([]).describe("As in a pod's spec."),
    extraVolumeMounts: z.array(named).default([]),
  })
  .prefault({})
  .describe(
    "The service answers the REST interface and keeps history, logs, models and artifacts.",
  );
