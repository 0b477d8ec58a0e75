/**
 * Distinguishes an object from those of other namespaces: `namespace/name`, or only its name.
 * `join` makes one string: a template would be kept as a pair of strings beside it.
 */
export function objectKey({
  namespace,
  name,
}: {
  readonly namespace?: string | undefined;
  readonly name: string;
}): string {
  return namespace === undefined ? name : [namespace, name].join("/");
}

/** As a client's namespace: every one. Their objects can be listed and watched, and no more. */
export const allNamespaces = "";
