import { ServiceError } from "../../contract/errors.ts";

interface AcceptRange {
  readonly range: string;
  readonly q: number;
}

/**
 * The offered media type that an Accept header prefers; the first of several with the same quality.
 * @throws ServiceError not_acceptable
 */
export function negotiateMediaType<T extends string>(
  accept: string | undefined,
  offered: readonly [T, ...T[]],
): T {
  const preferences = (accept ?? "").split(",").flatMap(parseAcceptRange);
  if (preferences.length === 0) return offered[0];
  const rated = offered.map((type) => ({ type, q: mediaTypeQuality(type, preferences) }));
  const best = rated.reduce((a, b) => (b.q > a.q ? b : a));
  if (best.q > 0) return best.type;
  const message = `Accept is "${accept}", and the answer can be ${offered.join(", ")}`;
  throw new ServiceError("not_acceptable", message);
}

const qualityPattern = /^q=(0(?:\.\d{1,3})?|1(?:\.0{1,3})?)$/;

function parseAcceptRange(text: string): AcceptRange[] {
  const [range = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  if (range === "") return [];
  const qualities = parameters.map((parameter) => qualityPattern.exec(parameter));
  const [, q] = qualities.find(Boolean) ?? [];
  return [{ range, q: q === undefined ? 1 : Number(q) }];
}

/** The quality of the most specific range that covers the type. */
function mediaTypeQuality(type: string, preferences: readonly AcceptRange[]): number {
  const [family] = type.split("/");
  for (const range of [type, `${family}/*`, "*/*"]) {
    const preference = preferences.find((candidate) => candidate.range === range);
    if (preference) return preference.q;
  }
  return 0;
}
