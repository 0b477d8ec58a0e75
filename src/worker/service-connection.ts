import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import type { z } from "zod";
import { type ErrorCode, problem, ServiceError } from "../contract/errors.ts";
import { type Assignment, assignment, workerEventsAnswer } from "../contract/worker.ts";
import { storageError } from "../storage/file-error.ts";
import type { RequestService, ServiceRequest } from "../storage/service-request.ts";

const firstRetryMs = 100;
const lastRetryMs = 5_000;
const answerLimitMs = 30_000;
/** A stored file is answered when it is on the disk for good. */
const storedLimitMs = 10 * 60_000;

export interface ServiceConnection {
  findAssignment(signal: AbortSignal): Promise<Assignment>;
  /** Tells events, each as JSON. Telling one twice does no harm: the service knows it by its sequence number. */
  sendEvents(
    events: readonly string[],
    signal: AbortSignal,
  ): Promise<z.infer<typeof workerEventsAnswer>>;
  /** Requests about files. */
  readonly requestService: RequestService;
}

export interface ServiceAddress {
  readonly url: string;
  readonly jobId: string;
  /** Asked for at each request: tokens of pods are replaced by new ones. */
  readonly token: () => string;
  readonly timeouts: RequestTimeouts;
}

/** How long a worker goes on asking, milliseconds. */
export interface RequestTimeouts {
  /** For its assignment, while the service is out of reach. */
  readonly start: number;
  /** To be allowed to tell events. */
  readonly events: number;
  /** To be allowed to fetch and store a file. */
  readonly files: number;
  /** While the service does not take the token. */
  readonly token: number;
}

/** The service as the worker of one job sees it. Requests are repeated while the service is out of reach. */
export function createServiceConnection({
  url,
  jobId,
  token,
  timeouts,
}: ServiceAddress): ServiceConnection {
  const base = `${url.replace(/\/$/, "")}/worker/v1/jobs/${jobId}`;
  const createRequester = (outageMs: number): RequestService => {
    return async (eventsRequest) =>
      requestWithRetry(eventsRequest, { base, token, outageMs, rejectionMs: timeouts.token });
  };
  const [requestAssignment, postEvents] = [
    createRequester(timeouts.start),
    createRequester(timeouts.events),
  ];
  const headers = () => ({ "content-type": "application/json" });
  const readAnswer: ServiceRequest<unknown>["readAnswer"] = async ({ body }) => body.json();
  return {
    async findAssignment(signal) {
      return assignment.parse(
        await requestAssignment({ method: "GET", path: "", statuses: [200], signal, readAnswer }),
      );
    },
    async sendEvents(events, signal) {
      const body = () => `{"events":[${events.join(",")}]}`;
      const eventsRequest = {
        method: "POST",
        path: "/events",
        headers,
        body,
        statuses: [200],
        signal,
        readAnswer,
      } as const;
      return workerEventsAnswer.parse(await postEvents(eventsRequest));
    },
    requestService: createRequester(timeouts.files),
  };
}

/** The service's answer is final: the job is not this worker's, or the worker speaks another protocol. */
export class ServiceRefusal extends Error {
  readonly status: number;
  readonly code: ErrorCode | undefined;

  constructor(message: string, { status, code }: { status: number; code: ErrorCode | undefined }) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The service could not be reached for longer than the worker waits. */
export class ServiceOutage extends Error {}

interface RequestOptions {
  readonly base: string;
  readonly token: () => string;
  readonly outageMs: number;
  readonly rejectionMs: number;
}

async function requestWithRetry<T>(
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
      if (waitedMs >= (isRefused ? rejectionMs : outageMs))
        throw isRefused ? failure : serviceOutageError(failure, waitedMs);
    }
    await delay(retryMs, undefined, signal && { signal });
  }
}

function isFinalFailure(error: unknown): boolean {
  return (
    error instanceof ServiceError ||
    (error instanceof ServiceRefusal && ![401, 403].includes(error.status))
  );
}

function serviceOutageError(cause: unknown, waitedMs: number): ServiceOutage {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const seconds = Math.round(waitedMs / 1000);
  return new ServiceOutage(`The service could not be reached for ${seconds} s: ${reason}`, {
    cause,
  });
}

async function requestOnce<T>(
  { method, path, headers, body, statuses, signal, readAnswer }: ServiceRequest<T>,
  { base, token }: Pick<RequestOptions, "base" | "token">,
): Promise<T> {
  const answer = await request(`${base}${path}`, {
    method,
    headers: { ...headers?.(), authorization: `Bearer ${token()}` },
    ...(body && { body: body() }),
    ...(signal && { signal }),
    headersTimeout: method === "PUT" ? storedLimitMs : answerLimitMs,
    bodyTimeout: answerLimitMs,
  });
  const { statusCode } = answer;
  if (statuses.includes(statusCode)) return readAnswer(answer);
  const text = await answer.body.text();
  const message = `The service answered ${statusCode} to ${method} ${new URL(base).pathname}${path}: ${text}`;
  if (statusCode === 507) throw new ServiceError("storage_full", "The service's storage is full");
  if (statusCode === 429 || statusCode >= 500) throw new Error(message);
  const isProblem = text !== "" && answer.headers["content-type"] === "application/problem+json";
  const code = isProblem ? problem.parse(JSON.parse(text)).code : undefined;
  throw new ServiceRefusal(message, { status: statusCode, code });
}
