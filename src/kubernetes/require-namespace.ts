import type { KubernetesObject, Stored } from "./resources.ts";

/** The namespace of a stored object whose kind has one. */
export function requireNamespace({ metadata }: Stored<KubernetesObject>): string {
  if (metadata.namespace !== undefined) return metadata.namespace;
  throw new TypeError(`The object "${metadata.name}" has no namespace`);
}
