import type { z } from "zod";
import type { ErrorCode } from "../errors.ts";
import { type Action, permissionTable } from "../people/permissions.ts";

/** Body of a successful answer: a JSON document, nothing, or bytes of the given media types. */
export type Reply = (
  | { readonly json: z.ZodType }
  | { readonly empty: true }
  | {
      readonly stream: readonly string[];
      /** Data of an event stream's events, by the event's name. */
      readonly events?: Readonly<Record<string, z.ZodType>>;
    }
) & {
  readonly headers?: readonly ResponseHeader[];
};

export interface Route {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  /** Relative to the base URL, which ends in `/v1`; `{name}` is a path parameter. */
  readonly path: `/${string}`;
  readonly summary: string;
  /** What the caller has to be allowed to do. */
  readonly action: Action;
  /**
   * What the path's `id`, or `project`, names. It has to be within the action's reach, else it is
   * not found.
   */
  readonly names?: "job" | "batch" | "project";
  /** Whether a request is an entry of the audit, which its handler writes with the change. */
  readonly audited?: true;
  /** No token is needed at all. */
  readonly open?: true;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Request headers the route reads, lower-case. */
  readonly headers?: z.ZodObject;
  /** JSON body. */
  readonly body?: z.ZodType;
  /** Largest JSON body, where it is less than `limits.jsonBodyBytes`. */
  readonly bodyBytes?: number;
  /** The body is a stream of bytes instead of JSON. */
  readonly upload?: true;
  readonly replies: Readonly<Partial<Record<200 | 201 | 202 | 204 | 206 | 304, Reply>>>;
  /** Codes beyond those that every route can answer with. */
  readonly errors: readonly ErrorCode[];
  /** Headers of answers with some of these codes. */
  readonly errorHeaders?: Readonly<Partial<Record<ErrorCode, readonly ResponseHeader[]>>>;
}

/** Whether a request changes nothing, so that it may come from another site. */
export function isReading({ method }: { readonly method: string }): boolean {
  return method === "GET" || method === "HEAD";
}

/** Every code that the route can answer with. */
export function routeErrorCodes({ method, body, open, action, errors }: Route): ErrorCode[] {
  const codes: ErrorCode[] = [];
  if (body !== undefined) codes.push("malformed_request");
  if (!open) codes.push("unauthorized");
  if (!isReading({ method })) codes.push("cross_site_request");
  if (permissionTable[action].scope !== null) codes.push("missing_scope");
  return [
    ...codes,
    ...errors,
    "validation_failed",
    "too_many_requests",
    "internal_error",
    "unavailable",
  ];
}

/** Every header of answers besides those of every HTTP server, and its description. */
export const responseHeaders = {
  location: "URL of what was created.",
  "idempotency-replayed":
    "`true` where this is the first answer to the same Idempotency-Key again.",
  "preference-applied": "The preference that was followed.",
  etag: "Names this version of the answer, in quotes; of a file its SHA-256.",
  "accept-ranges": "`bytes`: parts of the file can be asked for.",
  "content-range": "The part of the file that the answer contains.",
  "content-disposition": "Name to save the file under.",
  "content-length": "Size of the file, bytes.",
  "set-cookie": "The session's cookie, or its end.",
  "x-accel-buffering": "`no`: a proxy passes each line on at once.",
  "upload-offset": "Bytes that are kept of an upload that broke off.",
} as const;
export type ResponseHeader = keyof typeof responseHeaders;
