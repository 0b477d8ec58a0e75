/** Control characters and line breaks, and what changes the direction in which text is shown. */
const hidden = String.raw`\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069`;
const anyHidden = new RegExp(`[${hidden}]`, "u");
const lineBreak = /[\n\r\u2028\u2029]/;
const everyHidden = new RegExp(`(?!\t)[${hidden}]`, "gu");

/** Whether a text could look like another one, or like several lines. */
export function hasHiddenCharacters(text: string): boolean {
  return anyHidden.test(text);
}

/** The text with spaces for line breaks, and a replacement character for each hidden one. */
export function joinLines(text: string): string {
  if (!hasHiddenCharacters(text)) return text;
  // An expression for the break with its spaces would take quadratic time on spaces without one.
  const joined = text.replace(/\s+/g, (spaces) => (lineBreak.test(spaces) ? " " : spaces));
  return replaceHiddenCharacters(joined);
}

/** The text with a replacement character for each hidden one but tabs. */
export function replaceHiddenCharacters(text: string): string {
  return text.replace(everyHidden, "\u{fffd}");
}
