import { z } from "zod";
import { type ResponseHeader, responseHeaders } from "./response-headers.ts";
import { type Reply, type Route, routeErrorCodes } from "./route.ts";
import { routes } from "./routes.ts";
import { type ErrorCode, errorTable, problem } from "./errors.ts";
import { logEnd, logLine } from "./log.ts";
import { scopeTable } from "./token.ts";

type Json = Readonly<Record<string, unknown>>;

/** This interface as an OpenAPI 3.1 document, paths relative to the base URL. */
export function openApiDocument(): Json {
  const entries = Object.entries<Route>(routes);
  const inputs = convertSchemas("input", bodySchemas(entries));
  const outputs = convertSchemas("output", {
    ...replySchemas(entries),
    Problem: problem,
    LogLine: logLine,
    LogEnd: logEnd,
  });
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [name, route] of entries) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = describeOperation(name, route, { inputs, outputs });
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Model Optimization Service",
      version: "1",
      description: "Shards, quantizes and measures ONNX models as jobs.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/v1" }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas: {
        ...mergeSharedSchemas(inputs.shared, outputs.shared),
        LogEnd: outputs.schemas["LogEnd"],
      },
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description: `Scopes: ${Object.entries(scopeTable)
            .map(([scope, allows]) => `\`${scope}\`: ${allows}`)
            .join(" ")}`,
        },
      },
    },
  };
}

interface ConvertedSchemas {
  /** What stands for each schema in an operation: a reference where the schema has an id. */
  readonly schemas: Readonly<Record<string, Json>>;
  /** Schemas with an id, by it. */
  readonly shared: Readonly<Record<string, Json>>;
}

const generated = z.object({
  properties: z.record(z.string(), z.record(z.string(), z.unknown())).default({}),
  required: z.array(z.string()).default([]),
  $defs: z.record(z.string(), z.record(z.string(), z.unknown())).default({}),
});

/** JSON schemas of values as they are sent (input) or as they come out of parsing (output). */
function convertSchemas(
  io: "input" | "output",
  schemas: Readonly<Record<string, z.ZodType>>,
): ConvertedSchemas {
  const all = z.toJSONSchema(z.object(schemas), {
    target: "draft-2020-12",
    io,
    override({ zodSchema, jsonSchema }) {
      const { def } = zodSchema._zod;
      // Answers may gain fields without a new version of the interface.
      if (io === "output" && def.type === "object" && !("catchall" in def && def.catchall)) {
        delete jsonSchema.additionalProperties;
      }
    },
  });
  const pointed = z
    .unknown()
    .parse(JSON.parse(JSON.stringify(all).replaceAll('"#/$defs/', '"#/components/schemas/')));
  const { properties, $defs } = generated.parse(pointed);
  return { schemas: properties, shared: $defs };
}

function mergeSharedSchemas(
  inputs: ConvertedSchemas["shared"],
  outputs: ConvertedSchemas["shared"],
): ConvertedSchemas["shared"] {
  for (const [id, schema] of Object.entries(inputs)) {
    if (id in outputs && JSON.stringify(outputs[id]) !== JSON.stringify(schema)) {
      throw new Error(
        `Schema "${id}" differs between requests and answers: give the two different ids`,
      );
    }
  }
  return Object.fromEntries(
    Object.entries({ ...inputs, ...outputs }).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

type Entries = readonly (readonly [string, Route])[];

function bodySchemas(entries: Entries): Record<string, z.ZodType> {
  return Object.fromEntries(
    entries.flatMap(([name, { body }]) => (body === undefined ? [] : [[name, body]])),
  );
}

function replySchemas(entries: Entries): Record<string, z.ZodType> {
  return Object.fromEntries(
    entries.flatMap(([name, { replies }]) =>
      Object.entries(replies).flatMap(([status, reply]) =>
        "json" in reply ? [[`${name} ${status}`, reply.json]] : [],
      ),
    ),
  );
}

interface Schemas {
  readonly inputs: ConvertedSchemas;
  readonly outputs: ConvertedSchemas;
}

function describeOperation(name: string, route: Route, { inputs, outputs }: Schemas): Json {
  const parameters = [
    ...parametersIn("path", route.params),
    ...parametersIn("query", route.query),
    ...parametersIn("header", route.headers),
  ];
  const content = route.upload
    ? { "application/octet-stream": { schema: bytes } }
    : route.body && { "application/json": { schema: inputs.schemas[name] } };
  return {
    operationId: name,
    summary: route.summary,
    description: tokenNeeded(route),
    ...(route.open && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(content && { requestBody: { required: true, content } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.replies).map(([status, reply]) => [
          status,
          describeReply(reply, { status, schema: outputs.schemas[`${name} ${status}`] }),
        ]),
      ),
      ...problemResponses(route),
    },
  };
}

function tokenNeeded({ scope, open }: Route): string {
  if (open) return "No access token is needed.";
  return scope === null
    ? "Any valid token will do."
    : `Needs a token with the scope \`${scope}\` or \`admin\`.`;
}

/** Headers that OpenAPI describes elsewhere; as parameters it ignores them. */
const describedElsewhere = new Set(["accept", "content-type", "authorization"]);

function parametersIn(place: "path" | "query" | "header", schema: z.ZodObject | undefined): Json[] {
  if (schema === undefined) return [];
  const io = { target: "draft-2020-12", reused: "inline" } as const;
  // A parameter is text on the wire: what it stands for is its parsed form, whether it is needed its unparsed one.
  const { properties } = generated.parse(z.toJSONSchema(schema, { ...io, io: "output" }));
  const { required } = generated.parse(z.toJSONSchema(schema, { ...io, io: "input" }));
  return Object.entries(properties)
    .filter(([name]) => place !== "header" || !describedElsewhere.has(name))
    .map(([name, { description, ...parsed }]) => ({
      name,
      in: place,
      ...(description !== undefined && { description }),
      ...(required.includes(name) && { required: true }),
      ...(parsed["type"] === "array" && { style: "form", explode: true }),
      schema: parsed,
    }));
}

const bytes = { type: "string", format: "binary" } as const;

const reasons: Readonly<Record<string, string>> = {
  200: "Done",
  201: "Created",
  202: "Accepted",
  204: "Done",
  206: "Part of the file",
  304: "Not modified",
};

function describeReply(
  reply: Reply,
  { status, schema }: { status: string; schema: Json | undefined },
): Json {
  return {
    description: reasons[status],
    ...(reply.headers && { headers: describeResponseHeaders(reply.headers) }),
    ...("json" in reply && { content: { "application/json": { schema } } }),
    ...("stream" in reply && {
      content: Object.fromEntries(
        reply.stream.map((type) => [type, { schema: streamSchemas[type] ?? bytes }]),
      ),
    }),
  };
}

const integerHeaders: ReadonlySet<ResponseHeader> = new Set(["content-length", "upload-offset"]);

function describeResponseHeaders(names: readonly ResponseHeader[]): Json {
  return Object.fromEntries(
    names.map((name) => [
      name,
      {
        description: responseHeaders[name],
        schema: { type: integerHeaders.has(name) ? "integer" : "string" },
      },
    ]),
  );
}

const streamSchemas: Readonly<Record<string, Json>> = {
  "text/plain": { type: "string", description: "The lines as the job wrote them." },
  "text/event-stream": {
    type: "string",
    description:
      "An event `log` with a LogLine as its data and `seq` as its id for each line, and at last an event `end` with a LogEnd.",
  },
  "application/x-ndjson": {
    type: "string",
    description: "A LogLine for each line.",
  },
};

/** Headers of the answers with some statuses. */
const problemHeaders: Readonly<Record<number, Json>> = {
  401: { "WWW-Authenticate": { description: "`Bearer`.", schema: { type: "string" } } },
  429: { "Retry-After": { description: "Seconds to wait.", schema: { type: "integer" } } },
  503: { "Retry-After": { description: "Seconds to wait.", schema: { type: "integer" } } },
};

function problemResponses(route: Route): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of routeErrorCodes(route)) {
    const { status } = errorTable[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const headersWith = (status: number, codes: readonly ErrorCode[]) => ({
    ...problemHeaders[status],
    ...describeResponseHeaders(codes.flatMap((code) => route.errorHeaders?.[code] ?? [])),
  });
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((code) => `\`${code}\`: ${errorTable[code].title}.`).join(" "),
        ...(Object.keys(headersWith(status, codes)).length > 0 && {
          headers: headersWith(status, codes),
        }),
        ...(route.method !== "HEAD" && {
          content: {
            "application/problem+json": {
              schema: {
                allOf: [
                  { $ref: "#/components/schemas/Problem" },
                  { properties: { code: { enum: codes } } },
                ],
              },
            },
          },
        }),
      },
    ]),
  );
}
