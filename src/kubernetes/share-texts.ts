/** Objects of a kind say the same words, and what belongs together the same names, within a short time. */
const maxTexts = 4_096;
const texts = new Map<string, string>();

/** Puts one and the same string wherever the object, or another one lately, has equal ones: each took memory of its own. */
export function shareTexts(object: object): void {
  for (const [key, value] of Object.entries(object)) {
    if (typeof value === "string") Reflect.set(object, key, shared(value));
    else if (typeof value === "object" && value !== null) shareTexts(value);
  }
}

function shared(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size === maxTexts) texts.clear();
  texts.set(text, text);
  return text;
}
