/**
 * Milliseconds since 1970 as a Kubernetes MicroTime. The API server refuses any other number of digits than six.
 */
export function formatMicroTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}

/** Milliseconds since 1970, with the microseconds as a fraction. */
export function parseMicroTime(text: string): number {
  const [, fraction = ""] = /\.(\d+)/.exec(text) ?? [];
  const microseconds = Number(fraction.padEnd(6, "0").slice(3, 6));
  return Date.parse(text) + microseconds / 1000;
}
