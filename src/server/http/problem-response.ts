import { requestId, requestSpan } from "./request-id.ts";
import { problemDetails, ServiceError } from "../../contract/errors.ts";
import type { Log } from "../../log/json-log.ts";

/** The problem of a ServiceError; of another error, which is logged, it says nothing. */
export function problemResponse(error: unknown, request: Request, log: Log): Response {
  const known = error instanceof ServiceError ? error : internalError(error);
  const id = requestId(request);
  const problem = { ...problemDetails(known), requestId: id };
  const isTransient = known.code === "unavailable" && known.cause === undefined;
  if (problem.status >= 500 && !isTransient) {
    const { method, signal } = request;
    // The query may contain a signed source.
    const path = new URL(request.url).pathname;
    const fields = { requestId: id, traceId: requestSpan(request)?.traceId, method, path };
    if (signal.aborted) log("info", "A caller went away", fields);
    else log("error", "A request failed", { ...fields, error: known });
  }
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { "content-type": "application/problem+json", ...known.headers },
  });
}

function internalError(cause: unknown): ServiceError {
  return new ServiceError("internal_error", "The service failed; its log says why", { cause });
}

/** `part` says of what it is, such as `of job "job-01h…"`. */
export function notFoundError(what: string, name: string, part = ""): ServiceError {
  return new ServiceError("not_found", `There is no ${what} "${name}" ${part}`.trimEnd());
}
