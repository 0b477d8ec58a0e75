import { z } from "zod";
import { quantity } from "../src/contract/text/kubernetes-names.ts";

/** An object whose shape the API server checks. */
export const kubernetesObject = z.record(z.string(), z.unknown());
const quantities = z.record(z.string(), z.union([quantity, z.number().min(0)]));

export const named = z.looseObject({ name: z.string().min(1) });
export const stringMap = z.record(z.string(), z.string());

export const pullPolicy = z.enum(["Always", "IfNotPresent", "Never"]).default("IfNotPresent");

export const image = (repository: string) =>
  z.strictObject({
    repository: z.string().min(1).default(repository),
    tag: z
      .string()
      .regex(/^([\w.-]{1,128})?(@sha256:[0-9a-f]{64})?$/)
      .default("")
      .describe("Without it the chart's appVersion; may end in a digest, as 1.0.0@sha256:…"),
  });

export const resources = (
  requests: z.input<typeof quantities>,
  limits: z.input<typeof quantities>,
) => z.strictObject({ requests: quantities.default(requests), limits: quantities.default(limits) });

/** What administrators add to the pods of a process of ours. */
export const pods = {
  podLabels: stringMap.default({}).describe("Added to the pods."),
  podAnnotations: stringMap.default({}),
  extraEnv: z.array(named).default([]).describe("Environment variables, as in a container's spec."),
  nodeSelector: stringMap.default({}),
  tolerations: z.array(kubernetesObject).default([]),
  affinity: kubernetesObject.default({}),
  topologySpreadConstraints: z
    .array(kubernetesObject)
    .default([])
    .describe("As in a pod's spec; those without a labelSelector count pods of this kind."),
  priorityClassName: z.string().default(""),
};

export const aYear = 31_536_000;
export const seconds = z.int().min(1).max(aYear);
