import { ServiceError } from "../contract/errors.ts";

interface AcceptRange {
  readonly range: string;
  readonly q: number;
}

/** The offered media type that an Accept header likes best; the first of those it likes equally. */
export function negotiateMediaType<T extends string>(
  accept: string | undefined,
  offered: readonly [T, ...T[]],
): T {
  const preferences = (accept ?? "").split(",").flatMap(parseAcceptRange);
  if (preferences.length === 0) return offered[0];
  const rated = offered.map((type) => ({ type, q: mediaTypeQuality(type, preferences) }));
  const best = rated.reduce((a, b) => (b.q > a.q ? b : a));
  if (best.q > 0) return best.type;
  throw new ServiceError(
    "not_acceptable",
    `Accept is "${accept}", and the answer can be ${offered.join(", ")}`,
  );
}

function parseAcceptRange(text: string): AcceptRange[] {
  const [range = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  if (range === "") return [];
  const [, q] =
    parameters
      .map((parameter) => /^q=(0(?:\.\d{1,3})?|1(?:\.0{1,3})?)$/.exec(parameter))
      .find(Boolean) ?? [];
  return [{ range, q: q === undefined ? 1 : Number(q) }];
}

/** The most specific range that covers the type decides. */
function mediaTypeQuality(type: string, preferences: readonly AcceptRange[]): number {
  const [family] = type.split("/");
  for (const range of [type, `${family}/*`, "*/*"]) {
    const preference = preferences.find((candidate) => candidate.range === range);
    if (preference) return preference.q;
  }
  return 0;
}
