import { z } from "zod";
import { type FieldError, ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
import type { Route } from "../contract/route.ts";
import { fieldErrors, validationError } from "./field-errors.ts";

/** The parts of a request, each parsed by the route's schema of the same name. */
export interface RequestParts {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

/** Parses all that the route reads of a request; every bad field is named at once. */
export async function readRequest(
  route: Route,
  request: Request,
  pathParams: Readonly<Record<string, string>>,
): Promise<RequestParts> {
  const params = route.params && parsePath(route, route.params, pathParams);
  const body = route.body && (await readJson(request));
  const errors: FieldError[] = [];
  const parse = (prefix: string, schema: z.ZodType, value: unknown) => {
    const parsed = schema.safeParse(value);
    if (!parsed.success) errors.push(...fieldErrors(prefix, parsed.error));
    return parsed.data;
  };
  const parts = {
    params,
    query: parse(
      "query",
      route.query ?? noQuery,
      readQuery(route.query ?? noQuery, new URL(request.url), errors),
    ),
    headers: route.headers && parse("header", route.headers, readHeaders(route.headers, request)),
    body: route.body && parse("", route.body, body),
  };
  if (errors.length > 0) throw validationError(errors);
  return parts;
}

const noQuery = z.strictObject({});

/** What cannot be the name of a resource is the name of none. */
function parsePath(
  route: Route,
  schema: z.ZodObject,
  params: Readonly<Record<string, string>>,
): unknown {
  const parsed = schema.safeParse(params);
  if (parsed.success) return parsed.data;
  const fields = fieldErrors("path", parsed.error);
  if (!route.errors.includes("not_found")) throw validationError(fields);
  const names = Object.values(params).join("/");
  throw new ServiceError("not_found", `"${names}" cannot be the name of a resource`, { fields });
}

/** Parameters whose schema is an array may be repeated; others may not. */
function readQuery(schema: z.ZodObject, url: URL, errors: FieldError[]): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  for (const name of new Set(url.searchParams.keys())) {
    const values = url.searchParams.getAll(name);
    const repeatable = isArraySchema(schema.shape[name]);
    if (!repeatable && values.length > 1)
      errors.push({ pointer: `query/${name}`, message: "Is given more than once" });
    query[name] = repeatable ? values : values[0];
  }
  return query;
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

/** Reads a JSON body of bounded size. */
export async function readJson(request: Request): Promise<unknown> {
  const type = readMediaType(request);
  if (type !== "application/json") {
    throw new ServiceError(
      "unsupported_media_type",
      `Content-Type is "${type}" and must be "application/json"`,
    );
  }
  const bytes = await readBoundedBody(request, limits.jsonBodyBytes);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new ServiceError("malformed_request", "The body is not JSON in UTF-8", { cause });
  }
}

export function readMediaType(request: Request): string {
  const [type = ""] = (request.headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase();
}

export function checkDeclaredLength(request: Request, maxBytes: number): void {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > maxBytes) {
    throw new ServiceError(
      "payload_too_large",
      `The body has ${declared} bytes, ${maxBytes} are allowed`,
    );
  }
}

/** @throws ServiceError payload_too_large */
export async function readBoundedBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  checkDeclaredLength(request, maxBytes);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes)
      throw new ServiceError("payload_too_large", `The body has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
