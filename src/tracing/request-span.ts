import { SpanKind, SpanStatusCode, trace, type Tracer } from "@opentelemetry/api";
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_SERVER_ADDRESS,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
  ATTR_USER_AGENT_ORIGINAL,
} from "@opentelemetry/semantic-conventions";
import { formatTraceparent, parseTraceContext } from "./trace-context.ts";

/** Others are an unbounded number of names. */
const knownMethods: ReadonlySet<string> = new Set(
  "CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE".split(" "),
);

interface AnsweredRequest {
  /** Path of the route, with the names of its parameters; undefined where none answered. */
  readonly route: string | undefined;
  readonly status: number;
}

/** The span of a request that is being answered. */
export interface RequestSpan {
  readonly traceId: string;
  /** As in W3C Trace Context. */
  readonly traceparent: string;
  setProject(project: string): void;
  /** Links the trace of an earlier request. */
  link(traceparent: string): void;
  end(answered: AnsweredRequest): void;
}

/** Starts a span in the trace that the request's `traceparent` names, else in a new one. */
export function startRequestSpan(tracer: Tracer, request: Request, id: string): RequestSpan {
  const { headers } = request;
  const method = knownMethods.has(request.method) ? request.method : "_OTHER";
  const { pathname, protocol, hostname } = new URL(request.url);
  const parent = parseTraceContext({
    traceparent: headers.get("traceparent"),
    tracestate: headers.get("tracestate"),
  });
  // The query is left out, since it may contain a signed source.
  const attributes = {
    [ATTR_HTTP_REQUEST_METHOD]: method,
    [ATTR_URL_PATH]: pathname,
    [ATTR_URL_SCHEME]: protocol.slice(0, -1),
    [ATTR_SERVER_ADDRESS]: hostname,
    [ATTR_USER_AGENT_ORIGINAL]: headers.get("user-agent") ?? undefined,
    "mos.request.id": id,
  };
  const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parent);
  return {
    traceId: span.spanContext().traceId,
    traceparent: formatTraceparent(span.spanContext()),
    setProject: (project) => void span.setAttribute("mos.project", project),
    link(traceparent) {
      const context = trace.getSpanContext(parseTraceContext({ traceparent }));
      if (context) span.addLink({ context });
    },
    end({ route, status }) {
      span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, status);
      if (route !== undefined) {
        span.setAttribute(ATTR_HTTP_ROUTE, route);
        span.updateName(`${method} ${route}`);
      }
      if (status >= 500) {
        span.setAttribute(ATTR_ERROR_TYPE, String(status));
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end();
    },
  };
}
