import { z } from "zod";
import {
  type ConvertedSchemas,
  convertSchemas,
  type Json,
  mergeSharedSchemas,
  objectSchema,
} from "./convert-schemas.ts";
import { binarySchema, describeResponses } from "./describe-responses.ts";
import { problem } from "../errors.ts";
import { logEnd, logLine } from "../jobs/log.ts";
import { permissionTable } from "../people/permissions.ts";
import { scopeTable } from "../people/token.ts";
import type { Route } from "../routes/route.ts";
import { routes } from "../routes/routes.ts";

type RouteEntries = readonly (readonly [string, Route])[];

/**
 * This interface as an OpenAPI 3.1 document, paths relative to the base URL. Fields that are
 * undefined are absent in its JSON.
 */
export function openApiDocument(): Json {
  const entries = Object.entries<Route>(routes);
  const inputs = convertSchemas("input", bodySchemas(entries));
  const common = { Problem: problem, LogLine: logLine, LogEnd: logEnd };
  const outputs = convertSchemas("output", { ...replySchemas(entries), ...common });
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [name, route] of entries) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = describeOperation(name, route, { inputs, outputs });
  }
  const schemas = {
    ...mergeSharedSchemas(inputs.shared, outputs.shared),
    LogEnd: outputs.schemas["LogEnd"],
  };
  const components = { schemas, securitySchemes: { token: bearer } };
  const described = Object.entries(tags).map(([name, description]) => ({ name, description }));
  return { ...documentHead, tags: described, paths, components };
}

const tags = {
  Jobs: "Compression and quantization jobs, their logs, files and events.",
  Batches: "Several models for several targets in one request; suites compare them over time.",
  Models: "Uploaded models and the files of models with external data.",
  Targets: "Hardware profiles that jobs name.",
  Access: "Tokens, sessions, and identities of workflows.",
  Projects: "Projects, their members, usage and audit.",
  Webhooks: "Where events are sent, and their deliveries.",
  Service: "The service itself.",
} as const;

/** The tag of each path, by its first segment. */
const tagsBySegment: Readonly<Record<string, keyof typeof tags>> = {
  compress: "Jobs",
  quantize: "Jobs",
  jobs: "Jobs",
  events: "Jobs",
  links: "Jobs",
  "attestation-key": "Jobs",
  batches: "Batches",
  suites: "Batches",
  models: "Models",
  "model-versions": "Models",
  manifests: "Models",
  targets: "Targets",
  tokens: "Access",
  self: "Access",
  "trust-policy": "Access",
  sessions: "Access",
  projects: "Projects",
  people: "Projects",
  usage: "Projects",
  audit: "Projects",
  webhooks: "Webhooks",
  status: "Service",
  "openapi.json": "Service",
};

function findTag({ path }: Route): string {
  const tag = tagsBySegment[path.split("/")[1] ?? ""];
  if (tag === undefined) throw new Error(`The path "${path}" has no tag`);
  return tag;
}

const documentHead = {
  openapi: "3.1.1",
  info: {
    title: "Model Optimization Service",
    version: "1",
    description: "Shards, quantizes and measures ONNX models as jobs.",
    contact: { name: "Maintainers of the Model Optimization Service" },
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
  },
  servers: [{ url: "/v1" }],
  security: [{ token: [] }],
};

const scopeTexts = Object.entries(scopeTable).map(([scope, allows]) => `\`${scope}\`: ${allows}`);

const bearer = {
  type: "http",
  scheme: "bearer",
  description: `Scopes: ${scopeTexts.join(" ")}`,
};

function bodySchemas(entries: RouteEntries): Record<string, z.ZodType> {
  return Object.fromEntries(
    entries.flatMap(([name, { body }]) => (body === undefined ? [] : [[name, body]])),
  );
}

function replySchemas(entries: RouteEntries): Record<string, z.ZodType> {
  return Object.fromEntries(
    entries.flatMap(([name, { replies }]) =>
      Object.entries(replies).flatMap(([status, reply]) =>
        "json" in reply ? [[`${name} ${status}`, reply.json]] : [],
      ),
    ),
  );
}

interface RouteSchemas {
  /** Bodies, by the route's name. */
  readonly inputs: ConvertedSchemas;
  /** JSON answers, by the route's name and the HTTP status. */
  readonly outputs: ConvertedSchemas;
}

/** The OpenAPI operation of a route. */
function describeOperation(name: string, route: Route, { inputs, outputs }: RouteSchemas): Json {
  const content = describeBody(route, inputs.schemas[name]);
  const parameters = describeParameters(route);
  return {
    operationId: name,
    tags: [findTag(route)],
    summary: route.summary,
    description: describeToken(route),
    security: route.open ? [] : undefined,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: content && { required: true, content },
    responses: describeResponses(route, (status) => outputs.schemas[`${name} ${status}`]),
  };
}

function describeToken({ action, open }: Route): string {
  const { scope } = permissionTable[action];
  if (open) return "No access token is needed.";
  return scope === null
    ? "Any valid token will do."
    : `Needs a token with the scope \`${scope}\` or \`admin\`.`;
}

function describeBody({ body, upload }: Route, schema: Json | undefined): Json | undefined {
  if (upload) return { "application/octet-stream": { schema: binarySchema } };
  return body && { "application/json": { schema } };
}

type ParameterPlace = "path" | "query" | "header";

function describeParameters({ params, query, headers }: Route): Json[] {
  return [
    ...describeParametersIn("path", params),
    ...describeParametersIn("query", query),
    ...describeParametersIn("header", headers),
  ];
}

/** Headers that OpenAPI describes elsewhere; as parameters it ignores them. */
const describedElsewhere = new Set(["accept", "content-type", "authorization"]);

function describeParametersIn(place: ParameterPlace, schema: z.ZodObject | undefined): Json[] {
  if (schema === undefined) return [];
  const io = { target: "draft-2020-12", reused: "inline" } as const;
  // A parameter is text: its schema is that of its parsed form, whether it is required that of its
  // unparsed form.
  const { properties } = objectSchema.parse(z.toJSONSchema(schema, { ...io, io: "output" }));
  const { required } = objectSchema.parse(z.toJSONSchema(schema, { ...io, io: "input" }));
  return Object.entries(properties)
    .filter(([name]) => place !== "header" || !describedElsewhere.has(name))
    .map(([name, { description, ...parsed }]) => {
      const isArray = parsed["type"] === "array";
      return {
        name,
        in: place,
        description,
        required: required.includes(name) ? true : undefined,
        style: isArray ? "form" : undefined,
        explode: isArray ? true : undefined,
        schema: parsed,
      };
    });
}
