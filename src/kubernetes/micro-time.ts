/**
 * Formats milliseconds since 1970 as a Kubernetes MicroTime. The API server accepts exactly six
 * fractional digits.
 */
export function formatMicroTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
