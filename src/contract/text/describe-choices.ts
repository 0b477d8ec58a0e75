/** One sentence that lists the keys of a table, each with its meaning. */
export function describeChoices(table: Readonly<Record<string, string>>): string {
  const choices = Object.entries(table).map(([value, meaning]) => `\`${value}\`: ${meaning}`);
  return `${choices.join("; ")}.`;
}

/** The codes that a table explains, for a description. */
export function listCodes(table: Readonly<Record<string, unknown>>): string {
  return Object.keys(table)
    .map((code) => `\`${code}\``)
    .join(", ");
}
