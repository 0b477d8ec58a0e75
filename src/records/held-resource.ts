import { z } from "zod";

const heldResource = z.object({
  namespace: z.string(),
  name: z.string(),
  /** Null until the resource was seen in the cluster. */
  uid: z.string().nullable(),
  /** Of a resource that is still to be made. */
  spec: z.record(z.string(), z.unknown()).optional(),
});
/** The custom resource in a cluster that a job or batch is worked on as. */
export type HeldResource = z.infer<typeof heldResource>;

export function resourceText(resource: HeldResource | undefined): string | null {
  return resource === undefined ? null : JSON.stringify(resource);
}

export function parseResource(text: string | null): HeldResource | null {
  return text === null ? null : heldResource.parse(JSON.parse(text));
}
