import { readFile } from "node:fs/promises";
import { join } from "node:path";
import addFormats from "ajv-formats";
import { type Document, OpenAPIBackend } from "openapi-backend";
import type { FieldError } from "./github-rules.ts";

export interface GitHubRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** The part of GitHub's OpenAPI document that is used, as a judge of requests and answers. */
export interface GitHubInterface {
  /** The operation that a request names, with the parameters of its path. */
  match(
    request: GitHubRequest,
  ): { readonly operation: string; readonly params: Record<string, string> } | undefined;
  requestErrors(operation: string, request: GitHubRequest): FieldError[];
  answerErrors(operation: string, status: number, body: unknown): string[];
}

type ValidationError = NonNullable<ReturnType<OpenAPIBackend["validateRequest"]>["errors"]>[number];

/** By the root: what judges the answers of an operation takes long to build. */
const loaded = new Map<string, Promise<GitHubInterface>>();

/** Reads the document. Properties of requests that it does not know are refused, so that a misspelt one is found. */
export function loadGitHubInterface(apiRoot: string): Promise<GitHubInterface> {
  const known = loaded.get(apiRoot) ?? readGitHubInterface(apiRoot);
  loaded.set(apiRoot, known);
  return known;
}

async function readGitHubInterface(apiRoot: string): Promise<GitHubInterface> {
  const text = await readFile(join(import.meta.dirname, "github-openapi.json"), "utf8");
  const definition: Document = JSON.parse(text, (_, node: unknown) => withNull(node));
  refuseUnknownProperties(definition);
  const api = new OpenAPIBackend({
    definition,
    apiRoot,
    quick: true,
    coerceTypes: true,
    ajvOpts: { strict: false },
    customizeAjv: (ajv) => {
      addFormats.default(ajv);
      return ajv;
    },
  });
  await api.init();
  return {
    match(request) {
      const found = api.matchOperation(withTypes(request));
      if (found?.operationId === undefined) return undefined;
      const { params } = api.router.parseRequest(withTypes(request), found);
      return { operation: found.operationId, params: params as Record<string, string> };
    },
    requestErrors(operation, request) {
      const { valid, errors } = api.validateRequest(withTypes(request), operation);
      return valid ? [] : (errors ?? []).map(fieldError);
    },
    answerErrors(operation, status, body) {
      const { valid, errors } = api.validateResponse(body, operation, status);
      return valid
        ? []
        : (errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
    },
  };
}

function withTypes({ method, path, query, headers, body }: GitHubRequest) {
  return { method, path, query: { ...query }, headers: { ...headers }, body };
}

function fieldError({ instancePath, message = "is wrong", params }: ValidationError): FieldError {
  const named = "additionalProperty" in params ? ` ${params["additionalProperty"]}` : "";
  const field = instancePath.replace(/^\/(requestBody|query|path)\//, "").replaceAll("/", ".");
  return { resource: "Request", field, code: "invalid", message: `${message}${named}` };
}

/** What may be null is said in a way of OpenAPI's own, and not throughout; this is JSON Schema's. */
function withNull(node: unknown): unknown {
  const isNullable =
    typeof node === "object" && node !== null && "nullable" in node && node.nullable === true;
  if (!isNullable) return node;
  if (!("type" in node)) {
    const { nullable: _, ...rest } = node;
    return { anyOf: [rest, { enum: [null] }] };
  }
  return "enum" in node && Array.isArray(node.enum)
    ? { ...node, enum: [...node.enum, null] }
    : node;
}

function refuseUnknownProperties({ paths = {} }: Document): void {
  for (const methods of Object.values(paths)) {
    for (const operation of Object.values(methods ?? {})) close(operation);
  }
}

function close(operation: unknown): void {
  if (typeof operation === "object" && operation !== null && "requestBody" in operation)
    closeSchema(operation.requestBody);
}

/** Branches of `anyOf` stay open: each sees the properties of all. */
function closeSchema(node: unknown): void {
  if (typeof node !== "object" || node === null) return;
  if ("properties" in node && !("additionalProperties" in node))
    Object.assign(node, { additionalProperties: false });
  for (const [key, child] of Object.entries(node))
    if (key !== "anyOf" && key !== "oneOf") closeSchema(child);
}
