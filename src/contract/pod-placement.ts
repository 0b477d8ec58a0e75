import { z } from "zod";
import { labelName, labelValue, qualifiedName } from "./pod-names.ts";

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
  namespaces: z.array(labelName).max(100).exactOptional(),
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
export const podAffinity = z.strictObject({
  nodeAffinity: nodeTerms.exactOptional(),
  podAffinity: podTerms.exactOptional(),
  podAntiAffinity: podTerms.exactOptional(),
});

const nodeInclusion = z.enum(["Honor", "Ignore"]).exactOptional();

/** How pods are spread over zones or nodes. */
export const podTopologySpread = z
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
