import { z } from "zod";
import type { HeldMemory } from "./body-memory.ts";
import { escapePointer, fieldErrors, validationError } from "./field-errors.ts";
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
  // Only GET has ranges: RFC 9110, 14.2.
  const ignored = request.method === "HEAD" ? "range" : undefined;
  const names = Object.keys(schema.shape).filter((name) => name !== ignored);
  return Object.fromEntries(names.map((name) => [name, request.headers.get(name) ?? undefined]));
}

const hiddenTextMessage =
  "Must not have line breaks, marks of direction, or control, invisible or half characters";

/** The texts of a parsed body, keys too, that could forge a line of a log or of a table. */
function findHiddenText(value: unknown, pointer = ""): FieldError[] {
  const message = hiddenTextMessage;
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

/**
 * The JSON body of a request.
 * @throws ServiceError unsupported_media_type, payload_too_large, malformed_request; unavailable
 * where memory for bodies is used up
 */
export async function readJson(
  request: Request,
  maxBytes: number,
  held: HeldMemory,
): Promise<unknown> {
  const type = readMediaType(request);
  if (type !== "application/json") {
    const found = type === "" ? "is missing" : `is "${type}"`;
    const message = `Content-Type ${found} and must be "application/json"`;
    throw new ServiceError("unsupported_media_type", message);
  }
  requireIdentity(request);
  const bytes = await readBoundedBody(request, maxBytes, held.take);
  if (bytes.length === 0) {
    throw new ServiceError("malformed_request", "The body is empty and must be JSON");
  }
  checkJsonSize(bytes);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new ServiceError("malformed_request", "The body is not JSON in UTF-8", { cause });
  }
}

/** @throws ServiceError unsupported_media_type for a compressed body */
function requireIdentity(request: Request): void {
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() === "identity") return;
  const message = `Content-Encoding is "${encoding}", and a body must not be compressed`;
  const headers = { "accept-encoding": "identity" };
  throw new ServiceError("unsupported_media_type", message, { headers });
}

/** The media type of the Content-Type header without parameters; empty if there is none. */
function readMediaType(request: Request): string {
  const [type = ""] = (request.headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase();
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const opening: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const closing: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * Counts what a JSON text holds before anything is made of it.
 * @throws ServiceError payload_too_large where it is nested too deep or has too many values
 */
function checkJsonSize(text: Uint8Array): void {
  let depth = 0;
  let values = 1;
  let isString = false;
  for (let i = 0; i < text.length; i++) {
    const byte = text[i] ?? 0;
    if (isString) {
      if (byte === backslash) i += 1;
      else if (byte === quote) isString = false;
    } else if (byte === quote) {
      isString = true;
    } else if (byte === comma) {
      values += 1;
    } else if (opening.has(byte)) {
      depth += 1;
      values += 1;
    } else if (closing.has(byte)) {
      depth -= 1;
    }
    if (depth > limits.jsonDepth) throw tooLarge(`is nested deeper than ${limits.jsonDepth}`);
    if (values > limits.jsonValues) throw tooLarge(`has more than ${limits.jsonValues} values`);
  }
}

function tooLarge(what: string): ServiceError {
  return new ServiceError("payload_too_large", `The body ${what}`);
}

/**
 * A body in one buffer, since a list of pieces of one byte each would be a hundred times as large.
 * Each growth of the buffer is asked for by `takeMemory`.
 * @throws ServiceError payload_too_large
 */
export async function readBoundedBody(
  request: Request,
  maxBytes: number,
  takeMemory: (bytes: number) => void = () => {},
): Promise<Uint8Array> {
  checkDeclaredLength(request, maxBytes);
  let body = Buffer.alloc(0);
  let length = 0;
  for await (const chunk of readBody(request)) {
    const needed = length + chunk.byteLength;
    if (needed > maxBytes) {
      throw new ServiceError("payload_too_large", `The body has more than ${maxBytes} bytes`);
    }
    if (needed > body.length) {
      const size = Math.min(maxBytes, Math.max(needed, 2 * body.length));
      takeMemory(size - body.length);
      body = Buffer.concat([body.subarray(0, length)], size);
    }
    body.set(chunk, length);
    length = needed;
  }
  return body.subarray(0, length);
}

/**
 * Refuses a body by its Content-Length before it is read.
 * @throws ServiceError payload_too_large
 */
export function checkDeclaredLength(request: Request, maxBytes: number): void {
  const declared = readDeclaredLength(request);
  if (declared <= maxBytes) return;
  const message = `The body has ${declared} bytes; at most ${maxBytes} are allowed`;
  throw new ServiceError("payload_too_large", message);
}

/** The Content-Length; 0 where the length is not known before. */
export function readDeclaredLength(request: Request): number {
  return Number(request.headers.get("content-length") ?? 0);
}

/**
 * The bytes of a body. A reader that stops leaves the rest where it is: cancelling it would close
 * the connection before the answer is sent.
 */
export function readBody(request: Request): AsyncIterable<Uint8Array> {
  return request.body?.values({ preventCancel: true }) ?? noBytes();
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}
