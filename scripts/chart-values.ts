import { z } from "zod";
import { builtinTargets } from "../src/contract/jobs/target.ts";
import { configuredTarget } from "../src/contract/custom-resources/target-pod.ts";
import { dnsLabel } from "../src/contract/text/kubernetes-names.ts";
import { aYear, image, kubernetesObject, pods, resources, seconds } from "./chart-pod-values.ts";
import { service } from "./chart-service-values.ts";

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
    resourceTtlSeconds: z
      .int()
      .min(0)
      .max(aYear)
      .default(0)
      .describe(
        "Seconds that CompressionJobs and Batches stay after their end that name no time; 0 for good.",
      ),
    resources: resources({ cpu: "50m", memory: "128Mi" }, { memory: "512Mi" }).prefault({}),
    ...pods,
  })
  .prefault({})
  .describe("The operator runs CompressionJobs and Batches as Jobs and pods of their namespaces.");

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
  namespaces: z
    .array(dnsLabel)
    .default([])
    .describe(
      "Other namespaces whose resources are worked on, each the project of its name. They exist already.",
    ),
  allNamespaces: z
    .boolean()
    .default(false)
    .describe("Works on the resources of every namespace; workers need an account in each."),
  openshift: z
    .boolean()
    .default(false)
    .describe("Leaves the ids of users and groups to the cluster, as OpenShift wants it."),
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
    .array(configuredTarget)
    .min(1)
    .default([...builtinTargets])
    .describe("Hardware profiles that jobs name: fields in docs/reference.md#fields-of-a-target."),
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
      workerEgress: z
        .strictObject({
          enabled: z.boolean().default(false),
          to: z
            .array(kubernetesObject)
            .default([])
            .describe(
              "Rules of more that workers reach, as in a NetworkPolicy: a bucket in the cluster.",
            ),
        })
        .prefault({})
        .describe("Lets workers reach the service, DNS and port 443 of public addresses alone."),
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
