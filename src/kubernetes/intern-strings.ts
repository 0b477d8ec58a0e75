/** Objects of a kind share words, and related objects share names, within a short time. */
const maxInterned = 4_096;
const interned = new Map<string, string>();

/**
 * Replaces the strings of an object with one instance of each text, shared with recent objects. The
 * strings of a decoded response would each take memory of their own.
 */
export function internStrings(object: object): void {
  for (const [key, value] of Object.entries(object)) {
    if (typeof value === "string") Reflect.set(object, key, internString(value));
    else if (typeof value === "object" && value !== null) internStrings(value);
  }
}

function internString(text: string): string {
  const known = interned.get(text);
  if (known !== undefined) return known;
  if (interned.size === maxInterned) interned.clear();
  interned.set(text, text);
  return text;
}
