/** Fields with their values as texts; those of objects behind their names. */
export function flattenFields(fields: object, prefix = ""): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]: [string, unknown]) => {
    const isNested = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isNested) return flattenFields(value, `${prefix}${name}.`);
    const text = Array.isArray(value) ? value.join(", ") || "none" : String(value);
    return [[`${prefix}${name}`, text]];
  });
}
