import { z } from "zod";

const resourceReference = z.object({
  namespace: z.string(),
  name: z.string(),
  /** Null until the resource exists in the cluster. */
  uid: z.string().nullable(),
  /** Whether the batch was created as this resource, and not by a request. */
  isSource: z.boolean().optional(),
  /** Of a resource that is still to be created. */
  spec: z.record(z.string(), z.unknown()).optional(),
});
/** The custom resource in a cluster that a job or batch is worked on as. */
export type ResourceReference = z.infer<typeof resourceReference>;

export function serializeResource(resource: ResourceReference | undefined): string | null {
  return resource === undefined ? null : JSON.stringify(resource);
}

export function parseResource(text: string | null): ResourceReference | null {
  return text === null ? null : resourceReference.parse(JSON.parse(text));
}
