import { Readable } from "node:stream";
import { type Dispatcher, request } from "undici";
import type { z } from "zod";
import { limits } from "../contract/limits.ts";
import type { Route } from "../contract/route.ts";
import { type RouteName, type Routes, routes } from "../contract/routes.ts";
import { toAnswerError } from "./problem-error.ts";

/** After it an answer counts as lost; quiet streams of logs are kept up by pings. */
const silenceLimitMs = 4 * limits.pingSeconds * 1000;

export interface ClientOptions {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  /** Needed for all but the exchange of an identity token. A function is asked before each request. */
  readonly token?: string | (() => string);
  /** Of undici, for proxies and the like. */
  readonly dispatcher?: Dispatcher;
}

type RouteInputPart<N extends RouteName, K extends string> =
  Routes[N] extends Readonly<Record<K, infer S extends z.ZodType>>
    ? undefined extends z.input<S>
      ? { readonly [P in K]?: z.input<S> }
      : Record<string, never> extends z.input<S>
        ? { readonly [P in K]?: z.input<S> }
        : { readonly [P in K]: z.input<S> }
    : unknown;

/** What a route takes, by its schemas in the contract. */
export type CallInput<N extends RouteName> = RouteInputPart<N, "params"> &
  RouteInputPart<N, "query"> &
  RouteInputPart<N, "headers"> &
  RouteInputPart<N, "body">;

type JsonReply<R> = {
  [S in keyof R]: R[S] extends { json: infer J extends z.ZodType } ? z.output<J> : never;
}[keyof R];

/** The JSON document that a route answers with. */
export type CallOutput<N extends RouteName> = JsonReply<Routes[N]["replies"]>;

/** Routes that answer with a JSON document or with nothing. */
export type JsonRouteName = {
  [N in RouteName]: [CallOutput<N>] extends [never] ? never : N;
}[RouteName];

export interface UntypedInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Bytes to send in place of a JSON body. */
  readonly upload?: { readonly stream: () => AsyncIterable<Uint8Array>; readonly bytes: number };
}

/** Sends one request and gives the answer, whose body is still to be read. Answers that are errors are thrown. */
export async function sendRequest(
  name: RouteName,
  input: UntypedInput,
  options: ClientOptions & SendOptions,
) {
  const route: Route = routes[name];
  const url = buildRouteUrl(route, input, options.baseUrl);
  const json = input.body === undefined ? undefined : JSON.stringify(input.body);
  const { upload, signal, dispatcher } = options;
  const token = typeof options.token === "function" ? options.token() : options.token;
  const answer = await request(url, {
    method: route.method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && { "content-type": "application/json" }),
      ...(upload && {
        "content-type": "application/octet-stream",
        "content-length": String(upload.bytes),
      }),
      ...input.headers,
    },
    body: upload ? Readable.from(upload.stream()) : (json ?? null),
    bodyTimeout: silenceLimitMs,
    ...(signal && { signal }),
    ...(dispatcher && { dispatcher }),
  });
  if (answer.statusCode in route.replies) return answer;
  const { statusCode: status, headers, body } = answer;
  throw toAnswerError(`${route.method} ${url.pathname}`, {
    status,
    headers,
    text: await body.text(),
  });
}

function buildRouteUrl(
  route: Route,
  { params = {}, query = {} }: UntypedInput,
  baseUrl: string,
): URL {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ""),
  );
  const url = new URL(baseUrl.replace(/\/$/, "") + path);
  for (const [name, value] of Object.entries(query)) {
    const values = Array.isArray(value) ? value : [value];
    for (const one of values) if (one !== undefined) url.searchParams.append(name, String(one));
  }
  return url;
}

/** Whether a request may be sent again without a second effect. */
export function isRepeatable(name: RouteName, input: UntypedInput): boolean {
  const isCancelling = name === "cancelJob" || name === "cancelBatch";
  return (
    routes[name].method !== "POST" ||
    isCancelling ||
    input.headers?.["idempotency-key"] !== undefined
  );
}
