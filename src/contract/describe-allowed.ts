import type { z } from "zod";

const typeNames: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};

const formatNames: Readonly<Record<string, string>> = {
  url: "an address such as https://example.com/path",
  datetime: "a time such as 2026-01-01T00:00:00Z",
  email: "an e-mail address",
};

/** What is allowed in place of an invalid value, where its schema does not say it in words. */
export function describeAllowed(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${typeNames[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${joinChoices(issue.values.map((value) => JSON.stringify(value)))}`;
    case "too_small":
      return describeBound(issue.origin, issue.inclusive ? "at least" : "more than", issue.minimum);
    case "too_big":
      return describeBound(issue.origin, issue.inclusive ? "at most" : "less than", issue.maximum);
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_format":
      return describeAllowedFormat(issue);
    case "unrecognized_keys":
      return describeKnownFields(issue.inst);
    case "invalid_union":
      return describeOptions(issue.errors);
    case "invalid_key":
    case "invalid_element":
      return issue.issues.map(({ message }) => message).join(", and ");
    case "custom":
      return "must have another form";
  }
}

function joinChoices(choices: readonly string[]): string {
  const last = choices.at(-1) ?? "";
  return choices.length < 2 ? last : `${choices.slice(0, -1).join(", ")} or ${last}`;
}

const countedNouns: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ["character", "characters"],
  array: ["entry", "entries"],
};

function describeBound(origin: string, relation: string, bound: number | bigint): string {
  const nouns = countedNouns[origin];
  if (nouns === undefined) return `must be ${relation} ${bound}`;
  return `must have ${relation} ${bound} ${nouns[Number(bound) === 1 ? 0 : 1]}`;
}

function describeAllowedFormat({
  format,
  pattern,
  prefix,
}: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidStringFormat> & { readonly prefix?: unknown }) {
  if (format === "starts_with") return `must begin with ${JSON.stringify(prefix)}`;
  return format in formatNames ? `must be ${formatNames[format]}` : `must match ${pattern}`;
}

function describeKnownFields(schema: unknown): string {
  const known =
    schema instanceof Object && "shape" in schema ? Object.keys(schema.shape as object) : [];
  return known.length === 0
    ? "is not known; none is"
    : `is not known; known are ${known.join(", ")}`;
}

function describeOptions(options: readonly (readonly z.core.$ZodIssue[])[]): string {
  const messages = options.flatMap((issues) => issues.map(({ message }) => message));
  const allowed = messages.map((message) => message.replace(/^must be /, ""));
  return `must be ${[...new Set(allowed)].join(" or ")}`;
}
