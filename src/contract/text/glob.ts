/**
 * In a pattern `*` is any characters but slashes, and `**` any characters at all. What an expression
 * would try again for each of several stars is known here: each part goes over the value once.
 */
export function isGlobMatch(glob: string, value: string): boolean {
  const parts = glob.match(/\*\*|\*|[^*]+/g) ?? [];
  let ends: ReadonlySet<number> = new Set([0]);
  for (const part of parts) {
    ends = part.startsWith("*") ? passAny(ends, value, part === "**") : passText(ends, value, part);
  }
  return ends.has(value.length);
}

/** Where a text ends that begins at one of the positions. */
function passText(starts: ReadonlySet<number>, value: string, text: string): ReadonlySet<number> {
  const found = [...starts].filter((start) => value.startsWith(text, start));
  return new Set(found.map((start) => start + text.length));
}

/** Where any number of characters ends that begin at one of the positions. */
function passAny(
  starts: ReadonlySet<number>,
  value: string,
  takesSlashes: boolean,
): ReadonlySet<number> {
  const ends = new Set<number>();
  let isReached = false;
  for (let at = 0; at <= value.length; at++) {
    isReached = starts.has(at) || (isReached && (takesSlashes || value[at - 1] !== "/"));
    if (isReached) ends.add(at);
  }
  return ends;
}
