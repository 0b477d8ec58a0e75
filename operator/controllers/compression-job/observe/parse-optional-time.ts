/** Milliseconds since 1970. */
export function parseOptionalTime(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}
