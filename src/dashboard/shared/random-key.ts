/** A key that nobody else has. `crypto.randomUUID` is only there at addresses with TLS. */
export function randomKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}
