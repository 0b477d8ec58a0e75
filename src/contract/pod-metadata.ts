import { z } from "zod";
import { apiGroup } from "./api-group.ts";
import { labelValue, qualifiedName } from "./pod-names.ts";

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

export const podLabels = withoutOwnedKeys(z.record(qualifiedName, labelValue));
export const podAnnotations = withoutOwnedKeys(z.record(qualifiedName, z.string().max(65_536)));
