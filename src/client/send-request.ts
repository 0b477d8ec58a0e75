import type { z } from "zod";
import type { Route } from "../contract/routes/route.ts";
import type { RouteName, Routes } from "../contract/routes/routes.ts";
import { toAnswerError } from "./problem-error.ts";
import type { Transport, TransportAnswer, UploadBody } from "./transport.ts";

export interface Connection<R extends Partial<Routes> = Partial<Routes>> {
  /** The routes that are called: a bundle has only the schemas of these. */
  readonly routes: R;
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  /**
   * Required except for the exchange of an identity token, and where a session's cookie is sent. A
   * function is called before each request.
   */
  readonly token?: string | (() => string);
  readonly transport: Transport;
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

/** Routes that answer with a JSON document, also where another answer has none. */
export type JsonRouteName = {
  [N in RouteName]: [CallOutput<N>] extends [never] ? never : N;
}[RouteName];

/** Routes that answer with a list in pages. */
export type PagedRouteName = {
  [N in JsonRouteName]: CallOutput<N> extends { readonly nextCursor: string | null } ? N : never;
}[JsonRouteName];

/** Routes that answer with nothing. */
export type EmptyRouteName = {
  [N in RouteName]: Routes[N]["replies"] extends { readonly 204: { readonly empty: true } }
    ? N
    : never;
}[RouteName];

export interface UntypedInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Bytes to send in place of a JSON body. */
  readonly upload?: UploadBody;
}

/**
 * Sends one request. The caller reads the body of the answer.
 * @throws ProblemError, UnexpectedAnswerError for an answer that the route table does not list
 */
export async function sendRequest(
  name: RouteName,
  input: UntypedInput,
  { routes, baseUrl, token, transport, upload, signal }: Connection & SendOptions,
): Promise<TransportAnswer> {
  const route = requireRoute(routes, name);
  const url = buildRouteUrl(route, input, baseUrl);
  const json = input.body === undefined ? undefined : JSON.stringify(input.body);
  const jsonType = json === undefined ? undefined : "application/json";
  const contentType = upload === undefined ? jsonType : "application/octet-stream";
  const secret = typeof token === "function" ? token() : token;
  const headers = {
    authorization: secret === undefined ? undefined : `Bearer ${secret}`,
    "content-type": contentType,
    ...input.headers,
  };
  const answer = await transport({
    method: route.method,
    url,
    headers,
    body: upload ?? json,
    signal,
  });
  if (answer.status in route.replies) return answer;
  const text = await answer.body.text();
  throw toAnswerError(`${route.method} ${url.pathname}`, { ...answer, text });
}

export function requireRoute<N extends RouteName>(routes: Partial<Routes>, name: N): Routes[N] {
  const route = routes[name];
  if (route === undefined) throw new TypeError(`${name} is not one of the client's routes`);
  return route;
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
export function isRepeatable(name: RouteName, { method }: Route, input: UntypedInput): boolean {
  const isCancelling = name === "cancelJob" || name === "cancelBatch";
  return method !== "POST" || isCancelling || input.headers?.["idempotency-key"] !== undefined;
}
