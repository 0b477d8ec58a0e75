/** The codes that a table explains, for a description. */
export function listCodes(table: Readonly<Record<string, unknown>>): string {
  return Object.keys(table)
    .map((code) => `\`${code}\``)
    .join(", ");
}
