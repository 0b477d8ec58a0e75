/** Objects of a kind say the same words, and what belongs together the same names, within a short time. */
const maxInterned = 4_096;
const interned = new Map<string, string>();

/** Puts one and the same string wherever the object, or another one lately, has equal ones: each took memory of its own. */
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
