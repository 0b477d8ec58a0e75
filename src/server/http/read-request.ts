import { z } from "zod";
import type { HeldMemory } from "./body-memory.ts";
import { escapePointer, fieldErrors, validationError } from "./field-errors.ts";
import { readJson } from "./read-json.ts";
import { type FieldError, ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import { parseInput } from "../../contract/parse-input.ts";
import type { Route } from "../../contract/routes/route.ts";
import { hasHiddenCharacters } from "../../contract/text/hidden-characters.ts";

/** A request, each part parsed by the route's schema of the same name. */
export interface RequestParts {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

/**
 * Parses all parts of a request.
 * @throws ServiceError validation_failed that names every invalid field
 */
export async function readRequest(
  route: Route,
  request: Request,
  { params: pathParams, held }: { params: Readonly<Record<string, string>>; held: HeldMemory },
): Promise<RequestParts> {
  const params = route.params && parsePath(route, route.params, pathParams);
  const maxBytes = route.bodyBytes ?? limits.jsonBodyBytes;
  const body = route.body && (await readJson(request, maxBytes, held));
  const { query: querySchema = noQuery, headers: headersSchema, body: bodySchema } = route;
  const query = readQuery(querySchema, new URL(request.url));
  let errors = [...query.errors, ...findHiddenText(body)];
  const parse = (prefix: string, schema: z.ZodType, value: unknown) => {
    const { data, problems = [] } = parseInput(schema, value);
    errors = [...errors, ...fieldErrors(prefix, problems)];
    return data;
  };
  const parts = {
    params,
    query: parse("query", querySchema, query.values),
    headers: headersSchema && parse("header", headersSchema, readHeaders(headersSchema, request)),
    body: bodySchema && parse("", bodySchema, body),
  };
  if (errors.length > 0) throw validationError(errors);
  return parts;
}

const noQuery = z.strictObject({});

/** @throws ServiceError not_found: an invalid name is the name of no resource */
function parsePath(
  route: Route,
  schema: z.ZodObject,
  params: Readonly<Record<string, string>>,
): unknown {
  const { data, problems } = parseInput(schema, params);
  if (problems === undefined) return data;
  const fields = fieldErrors("path", problems);
  if (!route.errors.includes("not_found")) throw validationError(fields);
  const names = Object.values(params).join("/");
  throw new ServiceError("not_found", `"${names}" cannot be the name of a resource`, { fields });
}

/** Parameters whose schema is an array may be repeated; others may not. */
function readQuery(schema: z.ZodObject, { searchParams }: URL) {
  const values: Record<string, unknown> = Object.create(null);
  const errors: FieldError[] = [];
  for (const [name, given] of Map.groupBy(searchParams, ([key]) => key)) {
    const all = given.map(([, value]) => value);
    const repeatable = isArraySchema(schema.shape[name]);
    if (!repeatable && all.length > 1) {
      errors.push({ pointer: `query/${name}`, message: "Is given more than once" });
    }
    values[name] = repeatable ? all : all[0];
  }
  return { values, errors };
}

function isArraySchema(schema: z.core.$ZodType | undefined): boolean {
  return schema instanceof z.ZodOptional
    ? isArraySchema(schema.unwrap())
    : schema instanceof z.ZodArray;
}

function readHeaders(schema: z.ZodObject, request: Request): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.keys(schema.shape).map((name) => [name, request.headers.get(name) ?? undefined]),
  );
}

const message =
  "Must not have line breaks, control characters, marks of the text's direction or invisible ones";

/** The texts of a parsed body, keys too, that could forge a line of a log or of a table. */
function findHiddenText(value: unknown, pointer = ""): FieldError[] {
  if (typeof value === "string") return hasHiddenCharacters(value) ? [{ pointer, message }] : [];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const below = `${pointer}/${escapePointer(key)}`;
    if (hasHiddenCharacters(key)) return [{ pointer: below, message }];
    return findHiddenText(item, below);
  });
}

/** @throws ServiceError validation_failed */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const { data, problems } = parseInput(schema, body);
  if (problems === undefined) return data;
  throw validationError(fieldErrors("", problems));
}
