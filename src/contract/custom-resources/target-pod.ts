import { z } from "zod";
import { apiGroup } from "./api-group.ts";
import { target } from "../jobs/target.ts";
import { hasExactlyOne, dnsLabel } from "../text/kubernetes-names.ts";

/** A part of a pod's spec, which the API server checks. */
const checkedByServer = z.record(z.string(), z.unknown());
const listed = z.array(checkedByServer).max(100);

/** Domains of the keys that the operator, the Job controller and Kueue set. */
const ownedDomains: readonly string[] = [apiGroup, "batch.kubernetes.io", "kueue.x-k8s.io"];

const withoutOwnedKeys = z.record(z.string(), z.string()).superRefine((map, context) => {
  for (const key of Object.keys(map)) {
    if (!ownedDomains.includes(key.split("/")[0] ?? "")) continue;
    const message = `must not be of a domain that controllers set: ${ownedDomains.join(", ")}`;
    context.addIssue({ code: "custom", path: [key], message });
  }
});

const variable = z.looseObject({
  name: z
    .string()
    .min(1)
    .refine((name) => name !== "TMPDIR" && !name.startsWith("MOS_"), {
      error: "must not be TMPDIR or begin with MOS_: the operator sets these",
    }),
});

/** Volumes that every worker pod has. */
const ownedVolumes: readonly string[] = ["work", "token"];

const volumeName = z.string().refine((name) => !ownedVolumes.includes(name), {
  error: `must not be ${ownedVolumes.join(" or ")}: the operator adds these volumes`,
});

/** The kinds that the Pod Security Standard `restricted` allows, without tokens of accounts. */
const volumeKinds = [
  "configMap",
  "secret",
  "emptyDir",
  "persistentVolumeClaim",
  "ephemeral",
  "csi",
] as const;
const oneKind = hasExactlyOne(volumeKinds);

const volume = z
  .strictObject({
    name: volumeName,
    configMap: checkedByServer.exactOptional(),
    secret: checkedByServer.exactOptional(),
    emptyDir: checkedByServer.exactOptional(),
    persistentVolumeClaim: checkedByServer.exactOptional(),
    ephemeral: checkedByServer.exactOptional(),
    csi: checkedByServer.exactOptional(),
  })
  .refine(oneKind.check, { error: oneKind.error });

/** Folders of every worker that a mount would hide: its work, its token, its program. */
const ownedFolders = ["/work", "/var/run/secrets/modeloptimization.dev", "/app"];

function hidesOwnedFolder(mountPath: string): boolean {
  const path = `${mountPath.replace(/\/+$/, "")}/`;
  return ownedFolders.some((own) => path.startsWith(`${own}/`) || `${own}/`.startsWith(path));
}

const volumeMount = z.strictObject({
  name: volumeName,
  mountPath: z
    .string()
    .regex(/^\/[^:]*$/, { error: "must be an absolute path without ':'" })
    .refine((path) => !path.includes("/..") && !hidesOwnedFolder(path), {
      error: `must neither hide nor lie in ${ownedFolders.join(", ")}`,
    }),
  subPath: z.string().exactOptional(),
  readOnly: z.boolean().exactOptional(),
});

/**
 * What worker pods get besides what the operator sets, as in a pod's spec: what is listed here, so
 * that no pod gets a privilege, and what the operator sets cannot be replaced. Whether the content is
 * that of a pod is for the API server to say, when the operator starts.
 */
export const targetPod = z.strictObject({
  labels: withoutOwnedKeys.optional().describe("Labels of the pods."),
  annotations: withoutOwnedKeys.optional().describe("Annotations of the pods."),
  env: z
    .array(variable)
    .max(100)
    .optional()
    .describe("Variables of workers: values, or from a Secret, a ConfigMap or the pod."),
  volumes: z
    .array(volume)
    .max(30)
    .optional()
    .describe(`Volumes of the kinds ${volumeKinds.join(", ")}.`),
  volumeMounts: z
    .array(volumeMount)
    .max(30)
    .optional()
    .describe("Where workers find these volumes."),
  affinity: checkedByServer.optional().describe("Nodes and pods to be near to, or not."),
  topologySpreadConstraints: listed.optional().describe("How pods are spread over zones or nodes."),
  imagePullSecrets: listed.optional().describe("Secrets with which the target's image is pulled."),
  imagePullPolicy: z
    .enum(["Always", "IfNotPresent", "Never"])
    .optional()
    .describe("When the image is pulled; by default `IfNotPresent`."),
  resourceClaims: z
    .array(z.looseObject({ name: z.string(), request: z.string().exactOptional() }))
    .max(16)
    .optional()
    .describe(
      "Claims of devices (dynamic resource allocation) that the worker uses; `request` names the one request of the claim that it uses.",
    ),
});
export type TargetPod = z.infer<typeof targetPod>;

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
