import { z } from "zod";
import { apiGroup } from "./api-group.ts";
import { podVolumeMounts, podVolumes } from "./pod-volumes.ts";
import { target } from "../jobs/target.ts";
import {
  hasExactlyOne,
  dnsLabel,
  labelValue,
  objectName,
  qualifiedName,
} from "../text/kubernetes-names.ts";

/** Domains of the keys that the operator, the Job controller and Kueue set. */
const ownedDomains: readonly string[] = [apiGroup, "batch.kubernetes.io", "kueue.x-k8s.io"];

function withoutOwnedKeys<Schema extends z.ZodType<Record<string, unknown>>>(schema: Schema) {
  return schema.superRefine((map, context) => {
    for (const key of Object.keys(map)) {
      if (!ownedDomains.includes(key.split("/")[0] ?? "")) continue;
      const message = `must not be of a domain that controllers set: ${ownedDomains.join(", ")}`;
      context.addIssue({ code: "custom", path: [key], message });
    }
  });
}

const podLabels = withoutOwnedKeys(z.record(qualifiedName, labelValue));
const podAnnotations = withoutOwnedKeys(z.record(qualifiedName, z.string().max(65_536)));

const keyReference = z.strictObject({
  name: objectName,
  key: z.string().min(1).max(253),
  optional: z.boolean().exactOptional(),
});

const valueSources = {
  secretKeyRef: keyReference.exactOptional(),
  configMapKeyRef: keyReference.exactOptional(),
  fieldRef: z.strictObject({ fieldPath: z.string().min(1).max(253) }).exactOptional(),
};
const oneSource = hasExactlyOne(Object.keys(valueSources));
const oneValue = hasExactlyOne(["value", "valueFrom"]);

const variableName = z
  .string()
  .max(253)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
    error: "must be letters, digits and '_', the first no digit",
  })
  .refine((name) => name !== "TMPDIR" && !name.startsWith("MOS_"), {
    error: "must not be TMPDIR or begin with MOS_: the operator sets these",
  });

/** Variables of a container, with values or from a Secret, a ConfigMap or a field of the pod. */
const podEnvironment = z
  .array(
    z
      .strictObject({
        name: variableName,
        value: z.string().max(32_768).exactOptional(),
        valueFrom: z
          .strictObject(valueSources)
          .refine(oneSource.check, { error: oneSource.error })
          .exactOptional(),
      })
      .refine(oneValue.check, { error: oneValue.error }),
  )
  .max(100);

const values = z.array(z.string().max(63)).max(100).exactOptional();
const labelExpression = z.strictObject({
  key: qualifiedName,
  operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]),
  values,
});
const nodeExpression = z.strictObject({
  key: qualifiedName,
  operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
  values,
});
const nodeTerm = z.strictObject({
  matchExpressions: z.array(nodeExpression).max(100).exactOptional(),
  matchFields: z.array(nodeExpression).max(100).exactOptional(),
});
const labelSelector = z.strictObject({
  matchLabels: z.record(qualifiedName, labelValue).exactOptional(),
  matchExpressions: z.array(labelExpression).max(100).exactOptional(),
});
const labelKeys = z.array(qualifiedName).max(20).exactOptional();
const podTerm = z.strictObject({
  labelSelector: labelSelector.exactOptional(),
  namespaceSelector: labelSelector.exactOptional(),
  namespaces: z.array(dnsLabel).max(100).exactOptional(),
  matchLabelKeys: labelKeys,
  mismatchLabelKeys: labelKeys,
  topologyKey: qualifiedName,
});
const weight = z.int().min(1).max(100);

const nodeTerms = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z
    .strictObject({ nodeSelectorTerms: z.array(nodeTerm).min(1).max(20) })
    .exactOptional(),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight, preference: nodeTerm }))
    .max(20)
    .exactOptional(),
});
const podTerms = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z.array(podTerm).max(20).exactOptional(),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight, podAffinityTerm: podTerm }))
    .max(20)
    .exactOptional(),
});

/** Near which nodes and pods a pod is placed, and near which it is not. */
const podAffinity = z.strictObject({
  nodeAffinity: nodeTerms.exactOptional(),
  podAffinity: podTerms.exactOptional(),
  podAntiAffinity: podTerms.exactOptional(),
});

const nodeInclusion = z.enum(["Honor", "Ignore"]).exactOptional();

/** How pods are spread over zones or nodes. */
const podTopologySpread = z
  .array(
    z.strictObject({
      maxSkew: z.int().min(1),
      topologyKey: qualifiedName,
      whenUnsatisfiable: z.enum(["DoNotSchedule", "ScheduleAnyway"]),
      labelSelector: labelSelector.exactOptional(),
      minDomains: z.int().min(1).exactOptional(),
      nodeAffinityPolicy: nodeInclusion,
      nodeTaintsPolicy: nodeInclusion,
      matchLabelKeys: labelKeys,
    }),
  )
  .max(20);

const claimSources = ["resourceClaimTemplateName", "resourceClaimName"] as const;
const oneClaim = hasExactlyOne(claimSources);

const resourceClaims = z
  .array(
    z
      .strictObject({
        name: dnsLabel,
        request: dnsLabel
          .exactOptional()
          .describe("The one request of the claim that the worker uses; without it all of them."),
        resourceClaimTemplateName: objectName.exactOptional(),
        resourceClaimName: objectName.exactOptional(),
      })
      .refine(oneClaim.check, { error: oneClaim.error }),
  )
  .max(16);

/**
 * What worker pods get besides what the operator sets, as in a pod's spec. What the operator sets
 * cannot be replaced: its labels, variables, volumes and the security context.
 */
const targetPod = z
  .strictObject({
    labels: podLabels.optional().describe("Labels of the pods."),
    annotations: podAnnotations.optional().describe("Annotations of the pods."),
    env: podEnvironment
      .optional()
      .describe("Variables of workers: values, or from a Secret, a ConfigMap or the pod."),
    volumes: podVolumes
      .optional()
      .describe(
        "Volumes of the kinds configMap, secret, emptyDir, persistentVolumeClaim, ephemeral, csi.",
      ),
    volumeMounts: podVolumeMounts.optional().describe("Where workers find these volumes."),
    affinity: podAffinity.optional().describe("Nodes and pods to be near to, or not."),
    topologySpreadConstraints: podTopologySpread
      .optional()
      .describe("How pods are spread over zones or nodes."),
    imagePullSecrets: z
      .array(z.strictObject({ name: objectName }))
      .max(20)
      .optional()
      .describe("Secrets with which the target's image is pulled."),
    resourceClaims: resourceClaims
      .optional()
      .describe("Claims of devices (dynamic resource allocation) that the worker uses."),
  })
  .superRefine(({ volumes = [], volumeMounts = [] }, context) => {
    const names = volumes.map(({ name }) => name);
    for (const [index, { name }] of volumeMounts.entries()) {
      if (names.includes(name)) continue;
      const known = names.join(", ") || "there are none";
      const message = `must be one of the target's volumes: ${known}`;
      context.addIssue({ code: "custom", path: ["volumeMounts", index, "name"], message });
    }
  });

const targetQueue = z.strictObject({
  name: dnsLabel.describe("LocalQueue in the namespace of the jobs."),
  priorityClass: dnsLabel
    .exactOptional()
    .describe("WorkloadPriorityClass: which jobs are admitted first, and which make room."),
});

/** A target as the administrator configures it. `queue` and `pod` stay with the operator. */
export const configuredTarget = target
  .extend({
    pod: targetPod
      .optional()
      .describe("What worker pods get in a cluster besides the above; not in `GET /targets`."),
    queue: targetQueue
      .exactOptional()
      .describe(
        "Queue of Kueue that admits the target's jobs, where a resource has no label of another " +
          "one; not in `GET /targets`.",
      ),
  })
  .strict()
  .meta({ id: "ConfiguredTarget" });
export type ConfiguredTarget = z.infer<typeof configuredTarget>;
