import { z } from "zod";
import { type ErrorCode, errorTable, problem } from "./errors.ts";
import { limits } from "./limits.ts";
import { errorCodesOf, type Reply, responseHeaders, type Route, routes } from "./routes.ts";
import { scopeTable } from "./token.ts";

type Json = Record<string, unknown>;

/** Headers that answers with some statuses carry, whatever the route. */
const problemHeaders: Readonly<Record<number, Json>> = {
  401: { "WWW-Authenticate": textHeader("How to authenticate (RFC 6750).") },
  403: { "WWW-Authenticate": textHeader("Names the missing scope (RFC 6750).") },
  503: { "Retry-After": textHeader("Seconds to wait before the same call is worth another try.") },
};

const replyDescriptions: Readonly<Record<string, string>> = {
  200: "Done.",
  201: "Created.",
  202: "Accepted: work goes on.",
  204: "Done; there is nothing to say.",
  206: "The part that was asked for.",
  304: "The file is the one that the caller has.",
};

/** The REST interface as an OpenAPI 3.1 document. */
export function openApiDocument(): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const [name, route] of Object.entries<Route>(routes)) {
    const operations = (paths[route.path] ??= {});
    operations[route.method.toLowerCase()] = operation(name, route, schemas);
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Model Optimization Service",
      version: "1",
      summary: "Shards, quantizes and measures ONNX models as jobs.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/v1" }],
    security: [{ token: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: `Access token. ${scopeDescription()}` },
      },
    },
  };
}

function scopeDescription(): string {
  return Object.entries(scopeTable)
    .map(([scope, meaning]) => `\`${scope}\`: ${meaning}`)
    .join(" ");
}

function operation(operationId: string, route: Route, schemas: Json): Json {
  const parameters = [
    ...parametersOf("path", route.params, schemas),
    ...parametersOf("query", route.query, schemas),
    ...parametersOf("header", route.headers, schemas),
  ];
  return {
    operationId,
    summary: route.summary,
    description: route.scope ? `Needs a token with the scope \`${route.scope}\`.` : "Needs any valid token.",
    ...(parameters.length > 0 && { parameters }),
    ...requestBody(route, schemas),
    responses: responses(route, schemas),
  };
}

function parametersOf(place: "path" | "query" | "header", fields: z.ZodObject | undefined, schemas: Json): Json[] {
  // OpenAPI ignores a parameter named Accept: the media types of the answers say what it can be.
  const described = Object.entries(fields?.shape ?? {}).filter(([name]) => name !== "accept");
  return described.map(([name, field]) => {
    const { description, ...schema } = schemaOf(z.toJSONSchema(asSchema(field), { io: "output", override }), schemas);
    return {
      name,
      in: place,
      required: !asSchema(field).safeParse(undefined).success,
      ...(description !== undefined && { description }),
      schema,
    };
  });
}

/** The shape of a ZodObject holds zod's core schemas, all of which this project makes with the classic API. */
function asSchema(field: z.core.$ZodType): z.ZodType {
  if (!(field instanceof z.ZodType)) throw new TypeError("A parameter must be a schema of zod's classic API");
  return field;
}

function requestBody(route: Route, schemas: Json): Json {
  if (route.upload) {
    const content = { "application/octet-stream": {} };
    return { requestBody: { required: true, description: "The file's bytes.", content } };
  }
  if (!route.body) return {};
  const schema = schemaOf(z.toJSONSchema(route.body, { io: "input", override }), schemas);
  return {
    requestBody: {
      required: true,
      description: `At most ${limits.jsonBodyBytes} bytes.`,
      content: { "application/json": { schema } },
    },
  };
}

function responses(route: Route, schemas: Json): Json {
  const successes = Object.entries<Reply>(route.replies).map(([status, reply]) => [
    status,
    {
      description: replyDescriptions[status],
      ...(reply.headers && { headers: headersOf(reply) }),
      ...contentOf(reply, schemas),
    },
  ]);
  return Object.fromEntries([...successes, ...problemResponses(route, schemas)]);
}

function headersOf({ headers = [] }: Reply): Json {
  return Object.fromEntries(
    headers.map((name) => {
      const title = name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()).replace("Etag", "ETag");
      return [title, textHeader(responseHeaders[name])];
    }),
  );
}

function contentOf(reply: Reply, schemas: Json): Json {
  if ("json" in reply) {
    const schema = schemaOf(z.toJSONSchema(reply.json, { io: "output", override }), schemas);
    return { content: { "application/json": { schema } } };
  }
  if ("stream" in reply) return { content: Object.fromEntries(reply.stream.map((type) => [type, {}])) };
  return {};
}

function problemResponses(route: Route, schemas: Json): [string, Json][] {
  const schema = schemaOf(z.toJSONSchema(problem, { io: "output", override }), schemas);
  const byStatus = Map.groupBy(errorCodesOf(route), (code) => errorTable[code].status);
  return [...byStatus].map(([status, codes]) => {
    const description = codes.map((code) => `\`${code}\`: ${errorTable[code].title}.`).join(" ");
    const headers = problemHeaders[status];
    // An answer to HEAD has no body.
    const content = { "application/problem+json": { schema: problemSchema(schema, codes) } };
    return [String(status), { description, ...(headers && { headers }), ...(route.method !== "HEAD" && { content }) }];
  });
}

function problemSchema(problemReference: Json, codes: readonly ErrorCode[]): Json {
  return { ...problemReference, properties: { code: { enum: codes } } };
}

function textHeader(description: string): Json {
  return { description, schema: { type: "string" } };
}

/** Moves the named definitions of a schema to the document's components, where all schemas share them. */
function schemaOf(generated: z.core.JSONSchema.BaseSchema, schemas: Json): Json {
  const text = JSON.stringify(generated).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { $defs = {}, ...schema } = jsonObject.parse(JSON.parse(text));
  delete schema["$schema"];
  for (const [id, definition] of Object.entries(jsonObject.parse($defs))) {
    if (id in schemas && JSON.stringify(schemas[id]) !== JSON.stringify(definition)) {
      throw new Error(`Schema "${id}" differs between requests and answers: give it two ids`);
    }
    schemas[id] = definition;
  }
  return schema;
}

const jsonObject = z.record(z.string(), z.unknown());

type Override = NonNullable<z.core.ToJSONSchemaParams["override"]>;

/** Leaves out what says nothing to a reader, and that answers have no other fields: later versions may add some. */
const override: Override = ({ zodSchema, jsonSchema }) => {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  const { def } = zodSchema._zod;
  if (def.type === "object" && !("catchall" in def && def.catchall)) delete jsonSchema.additionalProperties;
};
