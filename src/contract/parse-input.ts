import { formatCount } from "./text/format-count.ts";
import type { z } from "zod";
import { truncate } from "./text/truncate.ts";
import { replaceHiddenCharacters } from "./text/hidden-characters.ts";
import { redactSource } from "./text/redact-source.ts";

/** What is wrong with a field of an input. */
export interface InputProblem {
  /** Of the field; empty for the whole input. */
  readonly path: readonly PropertyKey[];
  /** What was found and what is allowed, such as `is 0 and must be at least 1`. */
  readonly message: string;
}

type ParsedInput<T> =
  | { readonly data: T; readonly problems?: undefined }
  | { readonly data?: undefined; readonly problems: readonly InputProblem[] };

/** Longest part of a value that a message repeats, UTF-16 units. */
const maxShownLength = 80;

/** Fields whose values no message repeats, of requests, of files and of settings. */
const secretFields: ReadonlySet<PropertyKey> = new Set([
  "token",
  "secret",
  "secretAccessKey",
  "accessKeyId",
  "clientSecret",
  "privateKey",
  "webhookSecret",
  "credential",
  "signature",
  "MOS_DATABASE_URL",
]);

/** Parses what comes from outside: what is wrong says what was found and what is allowed. */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
): ParsedInput<z.output<Schema>> {
  const parsed = schema.safeParse(input, { error: describeAllowed, reportInput: true });
  if (parsed.success) return { data: parsed.data };
  const issues = withoutRepetitions(parsed.error.issues);
  return { problems: issues.flatMap((issue) => listProblems(issue, input)) };
}

/** Without what zod says of a value besides its wrong type: a text has a length as an array has. */
function withoutRepetitions(issues: readonly z.core.$ZodIssue[]): readonly z.core.$ZodIssue[] {
  return issues.filter((issue, i) => {
    const [former] = issues.slice(Math.max(0, i - 1), i);
    return former?.code !== "invalid_type" || former.path.join("/") !== issue.path.join("/");
  });
}

function listProblems(issue: z.core.$ZodIssue, input: unknown): InputProblem[] {
  const { code, path, message } = issue;
  if (code === "unrecognized_keys") {
    return issue.keys.map((key) => ({ path: [...path, key], message }));
  }
  if (code === "invalid_union") {
    const [nearest, ...others] = issue.errors.filter((issues) => !issues.some(isOfWhole));
    if (nearest !== undefined && others.length === 0) {
      return nearest.flatMap((inner) => {
        return listProblems({ ...inner, path: [...path, ...inner.path] }, input);
      });
    }
  }
  if (code === "invalid_key") return [{ path, message: `as a key ${message}` }];
  const value = code === "custom" ? valueAt(input, path) : issue.input;
  const isSecret = value !== undefined && path.some((key) => secretFields.has(key));
  if (isSecret || !message.startsWith("must ")) return [{ path, message }];
  const found = describeFound(value, code);
  return [{ path, message: found === undefined ? message : `${found} and ${message}` }];
}

/** Whether a value has not even the type of the schema, rather than a part that is wrong. */
function isOfWhole({ path }: z.core.$ZodIssue): boolean {
  return path.length === 0;
}

/** Undefined where the value would not help to see what is wrong. */
function describeFound(value: unknown, code: string): string | undefined {
  if (Array.isArray(value)) {
    if (code === "custom") return undefined;
    if (!code.startsWith("too_")) return "is an array";
    return `has ${formatCount(value.length, "entry", "entries")}`;
  }
  if (value === undefined) return code === "custom" ? undefined : "is missing";
  if (typeof value === "object" && value !== null) {
    return code === "custom" ? undefined : "is an object";
  }
  return `is ${quoteValue(value)}`;
}

function quoteValue(value: unknown): string {
  if (typeof value !== "string") return String(value);
  return replaceHiddenCharacters(JSON.stringify(truncate(redactSource(value), maxShownLength)));
}

/** The value at a path: an issue that a rule has added to a field knows only the object. */
function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      value instanceof Object && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined,
    input,
  );
}

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
function describeAllowed(issue: z.core.$ZodRawIssue): string {
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
    : `is not known; the known ones are ${known.join(", ")}`;
}

function describeOptions(options: readonly (readonly z.core.$ZodIssue[])[]): string {
  const messages = options.flatMap((issues) => issues.map(({ message }) => message));
  const allowed = messages.map((message) => message.replace(/^must be /, ""));
  return `must be ${[...new Set(allowed)].join(" or ")}`;
}
