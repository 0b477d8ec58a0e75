import type { Readable } from "node:stream";
import type { z } from "zod";
import type { Caller } from "../auth/authenticate.ts";
import type { ResponseHeader, Route } from "../contract/routes/route.ts";
import type { RouteName, Routes } from "../contract/routes/routes.ts";
import type { JsonText } from "./json-text.ts";
import type { AuditedChange } from "../records/people/add-audit-entry.ts";
import type { ServerContext } from "./server-context.ts";

/** A route's request, each part in the type that its schema gives. */
export interface RouteInput<R extends Route> {
  readonly params: Parsed<R, "params">;
  readonly query: Parsed<R, "query">;
  readonly headers: Parsed<R, "headers">;
  readonly body: Parsed<R, "body">;
  readonly caller: R extends { readonly open: true } ? undefined : Caller;
  /** The request's entry in the audit, which handlers write with their change. */
  readonly audit: R extends { readonly audited: true } ? AuditedChange : undefined;
  readonly request: Request;
}

type Parsed<R extends Route, Part extends "params" | "query" | "headers" | "body"> = R extends {
  readonly [P in Part]: infer Schema extends z.ZodType;
}
  ? z.output<Schema>
  : undefined;

/** One of the replies that a route has in the table. */
type RouteAnswer<R extends Route> = {
  [Status in keyof R["replies"] & number]: { readonly status: Status } & ReplyContent<
    R["replies"][Status]
  > &
    ReplyHeaders<R["replies"][Status]>;
}[keyof R["replies"] & number];

type ReplyContent<Reply> = Reply extends { readonly json: infer Schema extends z.ZodType }
  ? { readonly json: z.output<Schema> | JsonText<z.output<Schema>> }
  : Reply extends { readonly stream: readonly (infer MediaType extends string)[] }
    ? { readonly stream: ReadableStream<Uint8Array> | Readable; readonly mediaType: MediaType }
    : unknown;

type ReplyHeaders<Reply> = Reply extends {
  readonly headers: readonly (infer Name extends ResponseHeader)[];
}
  ? { readonly headers: Partial<Record<Name, string>> }
  : unknown;

/** The endpoint of every route. */
export type RouteHandlers = {
  readonly [Name in RouteName]: (
    context: ServerContext,
    input: RouteInput<Routes[Name]>,
  ) => Promise<RouteAnswer<Routes[Name]>>;
};
