/** What joins letters and emoji or chooses their form: seen, but not behind ASCII or each other. */
const joiners = String.raw`\u200c\u200d\ufe0e\ufe0f`;
const looseJoiner = String.raw`[${joiners}](?<![^\p{ASCII}${joiners}]\ufe0f?[${joiners}])`;
/**
 * Control characters and line breaks, what changes the direction in which text is shown, what is not
 * shown at all, and halves of surrogate pairs, for which a strict reader refuses a whole answer.
 */
const unseen = String.raw`\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff9-\ufffb`;
const hidden = `(?:[[${unseen}]--[${joiners}]]|${looseJoiner})`;
const anyHidden = new RegExp(hidden, "v");
const lineBreak = /[\n\r\u2028\u2029]/;
const everyHidden = new RegExp(`(?!\t)${hidden}`, "gv");

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
