type DefinedFields<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Leaves out what is undefined, which types of the Kubernetes client do not allow. */
export function definedFields<T extends object>(fields: T): DefinedFields<T> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as DefinedFields<T>;
}
