import type { Json } from "./convert-schemas.ts";
import { type ErrorCode, errorTable } from "../errors.ts";
import {
  type Reply,
  type ResponseHeader,
  responseHeaders,
  type Route,
  routeErrorCodes,
} from "../routes/route.ts";

export const binarySchema = { type: "string", format: "binary" } as const;

const reasons: Readonly<Record<string, string>> = {
  200: "Done",
  201: "Created",
  202: "Accepted",
  204: "Done",
  206: "Part of the file",
  304: "Not modified",
};

const logLineReference = { $ref: "#/components/schemas/LogLine" } as const;

const streamSchemas: Readonly<Record<string, Json>> = {
  "text/plain": { type: "string", description: "The lines as the job wrote them." },
  "text/event-stream": {
    type: "string",
    contentSchema: { anyOf: [logLineReference, { $ref: "#/components/schemas/LogEnd" }] },
    description:
      "An event `log` with a LogLine as its data and `seq` as its id for each line, " +
      "and at last an event `end` with a LogEnd.",
  },
  "application/x-ndjson": {
    type: "string",
    contentSchema: logLineReference,
    description: "A LogLine for each line.",
  },
};

const integerHeaders: ReadonlySet<ResponseHeader> = new Set(["content-length", "upload-offset"]);

/** Headers of the answers with some statuses. */
const problemHeaders: Readonly<Record<number, Json>> = {
  401: { "WWW-Authenticate": { description: "`Bearer`.", schema: { type: "string" } } },
  429: {
    "Retry-After": { description: "Seconds to wait.", schema: { type: "integer" } },
    "RateLimit-Policy": {
      description: "Name of the quota that is used up; `q`: its size, `w`: for so many seconds.",
      schema: { type: "string" },
    },
    RateLimit: {
      description: "Name of the quota; `r`: what is left of it, `t`: seconds until there is more.",
      schema: { type: "string" },
    },
  },
  503: { "Retry-After": { description: "Seconds to wait.", schema: { type: "integer" } } },
};

/** Every answer of a route by its HTTP status; `schemaFor` gives the schema of a JSON answer. */
export function describeResponses(
  route: Route,
  schemaFor: (status: string) => Json | undefined,
): Json {
  const replies = Object.entries(route.replies).map(([status, reply]) => [
    status,
    {
      description: reasons[status],
      headers: reply.headers && describeResponseHeaders(reply.headers),
      content: describeReplyContent(reply, schemaFor(status)),
    },
  ]);
  return { ...Object.fromEntries(replies), ...describeProblems(route) };
}

function describeReplyContent(reply: Reply, schema: Json | undefined): Json | undefined {
  if ("json" in reply) return { "application/json": { schema } };
  if ("empty" in reply) return undefined;
  return Object.fromEntries(
    reply.stream.map((type) => [type, { schema: streamSchemas[type] ?? binarySchema }]),
  );
}

function describeResponseHeaders(names: readonly ResponseHeader[]): Json {
  return Object.fromEntries(
    names.map((name) => {
      const type = integerHeaders.has(name) ? "integer" : "string";
      return [name, { description: responseHeaders[name], schema: { type } }];
    }),
  );
}

function describeProblems(route: Route): Json {
  const byStatus = Map.groupBy(routeErrorCodes(route), (code) => errorTable[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((code) => `\`${code}\`: ${errorTable[code].title}.`).join(" "),
        headers: describeProblemHeaders(route, status, codes),
        content: route.method === "HEAD" ? undefined : describeProblemContent(codes),
      },
    ]),
  );
}

function describeProblemHeaders(
  { errorHeaders }: Route,
  status: number,
  codes: readonly ErrorCode[],
): Json | undefined {
  const headers = {
    ...problemHeaders[status],
    ...describeResponseHeaders(codes.flatMap((code) => errorHeaders?.[code] ?? [])),
  };
  return Object.keys(headers).length > 0 ? headers : undefined;
}

function describeProblemContent(codes: readonly ErrorCode[]): Json {
  const schema = {
    allOf: [{ $ref: "#/components/schemas/Problem" }, { properties: { code: { enum: codes } } }],
  };
  return { "application/problem+json": { schema } };
}
