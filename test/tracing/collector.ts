import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { buffer } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { z } from "zod";
import { listenLocally } from "../support/listen-locally.ts";
import { ChangeSignal } from "../support/until.ts";

/** OTLP's form of JSON: ids in hex, 64-bit numbers as decimal texts, names in camelCase. */
const traceId = z.string().regex(/^(?!0{32})[0-9a-f]{32}$/);
const spanId = z.string().regex(/^(?!0{16})[0-9a-f]{16}$/);
const nanoseconds = z.string().regex(/^\d{19}$/);
const attribute = z
  .strictObject({
    key: z.string().min(1),
    value: z.union([
      z.strictObject({ stringValue: z.string() }),
      z.strictObject({ boolValue: z.boolean() }),
      z.strictObject({ intValue: z.union([z.int(), z.string().regex(/^-?\d+$/)]) }),
      z.strictObject({ doubleValue: z.number() }),
    ]),
  })
  .transform(({ key, value }) => [key, Object.values(value)[0]] as const);
const attributes = z.array(attribute).transform((pairs) => Object.fromEntries(pairs));
const dropped = z.literal(0).optional();
const span = z.strictObject({
  traceId,
  spanId,
  parentSpanId: spanId.optional(),
  traceState: z.string().optional(),
  flags: z.int().optional(),
  name: z.string().min(1),
  kind: z.int().min(1).max(5),
  startTimeUnixNano: nanoseconds,
  endTimeUnixNano: nanoseconds,
  attributes,
  droppedAttributesCount: dropped,
  events: z.array(
    z.strictObject({
      name: z.string(),
      timeUnixNano: nanoseconds,
      attributes,
      droppedAttributesCount: dropped,
    }),
  ),
  droppedEventsCount: dropped,
  links: z.array(
    z.strictObject({
      traceId,
      spanId,
      traceState: z.string().optional(),
      flags: z.int().optional(),
      attributes,
      droppedAttributesCount: dropped,
    }),
  ),
  droppedLinksCount: dropped,
  status: z.strictObject({ code: z.int().min(0).max(2), message: z.string().optional() }),
});
const exportRequest = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes, droppedAttributesCount: dropped }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string().optional() }),
          spans: z.array(span),
          schemaUrl: z.string().optional(),
        }),
      ),
      schemaUrl: z.string().optional(),
    }),
  ),
});

type WireSpan = z.infer<typeof span>;

export interface ReceivedSpan extends WireSpan {
  readonly resource: Readonly<Record<string, unknown>>;
}

/** Milliseconds since 1970. */
export function startMs({ startTimeUnixNano }: ReceivedSpan): number {
  return toMilliseconds(startTimeUnixNano);
}

export function endMs({ endTimeUnixNano }: ReceivedSpan): number {
  return toMilliseconds(endTimeUnixNano);
}

/** Of `localhost`, as PEM texts. */
interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** A double has the microseconds of our time, and not its nanoseconds. */
function toMilliseconds(nanoseconds: string): number {
  return Number(nanoseconds.slice(0, -3)) / 1000;
}

/**
 * A stand-in for an OpenTelemetry collector: it takes traces by OTLP over HTTP, and the test fails
 * where those in JSON do not have OTLP's form.
 */
export async function startCollector(t: Pick<TestContext, "after">, certificate?: Certificate) {
  const spans: ReceivedSpan[] = [];
  const requests: { readonly request: IncomingMessage; readonly body: Buffer }[] = [];
  const problems: unknown[] = [];
  const received = new ChangeSignal();
  const respond: RequestListener = (request, response) => {
    void buffer(request).then((body) => {
      requests.push({ request, body });
      const isJson = request.headers["content-type"] === "application/json";
      if (isJson) {
        const parsed = exportRequest.safeParse(JSON.parse(body.toString()));
        if (parsed.success) spans.push(...withResources(parsed.data));
        else problems.push(parsed.error);
      }
      response.setHeader("content-type", request.headers["content-type"] ?? "");
      response.end(isJson ? "{}" : "");
      received.notify();
    });
  };
  const server = certificate ? createSecureServer(certificate, respond) : createServer(respond);
  const origin = await listenLocally(t, server);
  const endpoint = certificate ? origin.replace("http://127.0.0.1", "https://localhost") : origin;
  t.after(() => assert.deepEqual(problems, []));
  return {
    endpoint,
    spans,
    requests,
    /** Resolves when the span that is wanted has been received. */
    async until(isWanted: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan> {
      return received.until(`a span fits ${String(isWanted)}`, () => spans.find(isWanted));
    },
  };
}

function withResources({ resourceSpans }: z.infer<typeof exportRequest>): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((each) => ({ ...each, resource: resource.attributes })),
    ),
  );
}
