/** Distinguishes an object from those of other namespaces: `namespace/name`, or its name alone. */
export function objectKey({
  namespace,
  name,
}: {
  readonly namespace?: string | undefined;
  readonly name: string;
}): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
