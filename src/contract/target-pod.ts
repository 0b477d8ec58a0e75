import { z } from "zod";
import { podEnvironment } from "./pod-environment.ts";
import { podAnnotations, podLabels } from "./pod-metadata.ts";
import { hasExactlyOne, labelName, objectName } from "./pod-names.ts";
import { podAffinity, podTopologySpread } from "./pod-placement.ts";
import { podVolumeMounts, podVolumes } from "./pod-volumes.ts";
import { target } from "./target.ts";

const claimSources = ["resourceClaimTemplateName", "resourceClaimName"] as const;
const oneClaim = hasExactlyOne(claimSources);

const resourceClaims = z
  .array(
    z
      .strictObject({
        name: labelName,
        request: labelName
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
  name: labelName.describe("LocalQueue in the namespace of the jobs."),
  priorityClass: labelName
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
