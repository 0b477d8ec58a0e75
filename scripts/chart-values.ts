import { z } from "zod";
import { configuredTarget, targetPod } from "../src/contract/custom-resources/target-pod.ts";
import { dnsLabel } from "../src/contract/text/kubernetes-names.ts";
import {
  aYear,
  image,
  kubernetesObject,
  pods,
  pullPolicy,
  resources,
  seconds,
  stringMap,
} from "./chart-pod-values.ts";
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
    pod: targetPod
      .default({})
      .describe("What the pods of all targets get, such as the volumes that hold these folders."),
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
    .extend({ pullPolicy: pullPolicy.describe("Of all images.") })
    .prefault({})
    .describe("Image of the service and the operator."),
  namespaces: z
    .union([z.array(dnsLabel), z.literal("*")])
    .default([])
    .describe(
      'Other namespaces whose resources are worked on, each the project of its name, which exist already; or "*" for every one: workers need an account in each.',
    ),
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
    .default([])
    .describe(
      "Hardware profiles that jobs name: fields in docs/reference.md#fields-of-a-target; without any the built-in ones.",
    ),
  operator,
  service,
  worker,
  admission: z
    .strictObject({
      models: z
        .boolean()
        .default(false)
        .describe(
          "Refuses pods that name a CompressionJob, by the annotation modeloptimization.dev/compression-job, which is not Completed or has a gate that failed.",
        ),
    })
    .prefault({})
    .describe("Policies for pods of others (docs/administration.md#admission-policies)."),
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
        .describe("Lets workers reach only the service, DNS and port 443 of public addresses."),
    })
    .prefault({})
    .describe(
      "Nothing reaches workers, and only those named here reach the service and the operator.",
    ),
  monitoring: z
    .strictObject({
      prometheus: z
        .boolean()
        .default(false)
        .describe(
          "Has the Prometheus operator scrape /metrics of the service and the operator, and alert (docs/alerts.md).",
        ),
      grafana: z
        .boolean()
        .default(false)
        .describe("A ConfigMap with a Grafana dashboard of the same metrics."),
      labels: stringMap
        .default({})
        .describe("Labels that Prometheus and Grafana's sidecar select them by."),
    })
    .prefault({}),
});
