import { setTimeout as delay } from "node:timers/promises";
import { type Dispatcher, request } from "undici";
import { type ErrorCode, problem, ServiceError } from "../contract/errors.ts";
import { errorMessage } from "../log/error-message.ts";
import { storageError } from "../storage/file-error.ts";
import type { ServiceRequest } from "../storage/service-request.ts";
import { ServiceOutage, ServiceRefusal } from "./service-errors.ts";

const firstRetryMs = 100;
const lastRetryMs = 5_000;
const answerLimitMs = 30_000;
/** A PUT is answered when its file is flushed to the disk. */
const storedLimitMs = 10 * 60_000;

interface RequestOptions {
  readonly base: string;
  readonly token: () => string;
  /** How long requests are repeated while the service is unreachable, milliseconds. */
  readonly outageMs: number;
  /** How long requests are repeated while the service refuses the token, milliseconds. */
  readonly rejectionMs: number;
}

/**
 * Repeats a request until it is answered. Transferred bytes start the time limits again.
 * @throws ServiceRefusal, ServiceOutage, ServiceError storage_full, too_many_bytes
 */
export async function requestWithRetry<T>(
  question: ServiceRequest<T>,
  { rejectionMs, outageMs, ...address }: RequestOptions,
): Promise<T> {
  const { signal, countTransferred = () => 0 } = question;
  let failingSince: number | undefined;
  let known = countTransferred();
  for (let retryMs = firstRetryMs; ; retryMs = Math.min(retryMs * 2, lastRetryMs)) {
    try {
      return await requestOnce(question, address);
    } catch (error) {
      signal?.throwIfAborted();
      const failure = storageError(error);
      if (isFinalFailure(failure)) throw failure;
      if (countTransferred() > known) {
        failingSince = undefined;
        known = countTransferred();
        retryMs = firstRetryMs;
      }
      failingSince ??= performance.now();
      const waitedMs = performance.now() - failingSince;
      const isRefused = failure instanceof ServiceRefusal;
      if (waitedMs >= (isRefused ? rejectionMs : outageMs)) {
        throw isRefused ? failure : serviceOutageError(failure, waitedMs);
      }
    }
    await delay(retryMs, undefined, { signal });
  }
}

function isFinalFailure(error: unknown): boolean {
  return (
    error instanceof ServiceError ||
    (error instanceof ServiceRefusal && ![401, 403].includes(error.status))
  );
}

function serviceOutageError(cause: unknown, waitedMs: number): ServiceOutage {
  const duration = `${Math.round(waitedMs / 1000)} s`;
  const message = `The service could not be reached for ${duration}: ${errorMessage(cause)}`;
  return new ServiceOutage(message, { cause });
}

async function requestOnce<T>(
  { method, path, headers, body, statuses, signal, readAnswer }: ServiceRequest<T>,
  { base, token }: Pick<RequestOptions, "base" | "token">,
): Promise<T> {
  const answer = await request(`${base}${path}`, {
    method,
    headers: { ...headers?.(), authorization: `Bearer ${token()}` },
    body: body?.() ?? null,
    signal: signal ?? null,
    headersTimeout: method === "PUT" ? storedLimitMs : answerLimitMs,
    bodyTimeout: answerLimitMs,
  });
  if (statuses.includes(answer.statusCode)) return readAnswer(answer);
  const failure = await answerError(`${method} ${new URL(base).pathname}${path}`, answer);
  // Another file may fit; what a job reports waits until there is room, as in any outage.
  const isFull = failure instanceof ServiceError && failure.code === "storage_full";
  throw isFull && method !== "PUT" ? new Error(failure.message) : failure;
}

async function answerError(call: string, answer: Dispatcher.ResponseData): Promise<Error> {
  const { statusCode: status, headers, body } = answer;
  const text = await body.text();
  if (status === 507) return new ServiceError("storage_full", "The service's storage is full");
  const message = `The service answered ${status} to ${call}: ${text}`;
  const isProblem = headers["content-type"] === "application/problem+json";
  const code = isProblem ? parseProblemCode(text) : undefined;
  if (code === "too_many_bytes") return new ServiceError(code, "The project's storage is used up");
  if (status === 429 || status >= 500) return new Error(message);
  return new ServiceRefusal(message, { status, code });
}

function parseProblemCode(text: string): ErrorCode | undefined {
  return text === "" ? undefined : problem.parse(JSON.parse(text)).code;
}
