import { Agent, type Dispatcher, getGlobalDispatcher, request } from "undici";
import type { z } from "zod";
import { type ErrorCode, problem, ServiceError } from "../contract/errors.ts";
import { type LocatedSource, locatedSource } from "../contract/worker-protocol/transfers.ts";
import {
  type Assignment,
  assignment,
  workerEventsAnswer,
} from "../contract/worker-protocol/messages.ts";
import { backOffMs, retry } from "../limits/retry.ts";
import { errorMessage } from "../log/error-message.ts";
import type { RequestFromService } from "../storage/fetch-model.ts";
import { storageError } from "../storage/file-error.ts";
import type { RequestService, ServiceRequest } from "../storage/service-blob-store.ts";

type EventsAnswer = z.infer<typeof workerEventsAnswer>;

export interface ServiceConnection {
  findAssignment(signal: AbortSignal): Promise<Assignment>;
  /** Sends events, each as JSON. Repetitions are harmless: sequence numbers identify events. */
  sendEvents(events: readonly string[], signal: AbortSignal): Promise<EventsAnswer>;
  /**
   * Where a source of the job is that the service has credentials for.
   * @throws ServiceError where the service refuses it
   */
  locateSource(source: string, signal: AbortSignal): Promise<LocatedSource>;
  /** The content of sources; undefined where the worker has a network to read them itself. */
  readonly relay: SourceRelay | undefined;
  /** Requests about files. */
  readonly requestService: RequestService;
}

/** Sources of a worker that has no network, which the service reads for it. */
export interface SourceRelay {
  readonly request: RequestFromService;
  /** Says that the worker needs no source any more: none is sent from now on. */
  close(signal: AbortSignal): Promise<void>;
}

interface ServiceAddress {
  readonly url: string;
  /** Where the service listens for a worker that has no network. */
  readonly socketPath?: string | undefined;
  readonly jobId: string;
  /** Called for each request: tokens of pods are replaced by new ones. */
  readonly token: () => string;
  readonly timeouts: RequestTimeouts;
  /** Reports of outages; none by default. */
  readonly outageReports?: OutageReports | undefined;
}

interface OutageReports {
  /** From the start of an outage to the first report, and to each further one. */
  readonly everyMs: number;
  readonly report: (message: string) => void;
}

/** How long a worker repeats requests, milliseconds. */
export interface RequestTimeouts {
  /** For its assignment, while the service is unreachable. */
  readonly start: number;
  /** To report events. */
  readonly events: number;
  /** To fetch and store a file. */
  readonly files: number;
  /** While the service refuses the token. */
  readonly token: number;
}

/** The service, as the worker of one job uses it. Requests are repeated over outages. */
export function createServiceConnection({
  url,
  socketPath,
  jobId,
  token,
  timeouts,
  outageReports,
}: ServiceAddress): ServiceConnection {
  const base = `${url.replace(/\/$/, "")}/worker/v1/jobs/${jobId}`;
  const socket =
    socketPath === undefined ? undefined : new Agent({ connect: { socketPath }, connections: 8 });
  const address = { base, token, dispatcher: socket ?? getGlobalDispatcher() };
  const noteOutage = createOutageNotes(outageReports);
  const limitOutages = (outageMs: number): RequestService => {
    return async (request) =>
      requestWithRetry(request, { ...address, outageMs, rejectionMs: timeouts.token, noteOutage });
  };
  const requestStart = limitOutages(timeouts.start);
  const requestEvents = limitOutages(timeouts.events);
  const requestFiles = limitOutages(timeouts.files);
  return {
    findAssignment: (signal) => requestAssignment(requestStart, signal),
    sendEvents: (events, signal) => postEvents(requestEvents, events, signal),
    locateSource: (source, signal) => askForSource(requestFiles, source, signal),
    relay: socket && {
      request: (...asked) => requestSourceContent(address, ...asked),
      close: (signal) =>
        requestFiles({
          method: "DELETE",
          path: "/source",
          statuses: [204],
          signal,
          readAnswer: ({ body }) => body.dump(),
        }),
    },
    requestService: requestFiles,
  };
}

/** Not retried over outages: the service of a worker without a network ends with the worker. */
async function requestSourceContent(
  { base, token, dispatcher }: Address,
  ...[source, headers, signal]: Parameters<RequestFromService>
): Promise<Dispatcher.ResponseData> {
  const answer = await request(`${base}/source`, {
    method: "POST",
    headers: {
      ...headers,
      authorization: `Bearer ${token()}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ source }),
    dispatcher,
    signal,
    // The service has limits for the source, and the worker for the pace of all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  if ([200, 206].includes(answer.statusCode)) return answer;
  const { status, code, detail } = problem.parse(await answer.body.json());
  throw status >= 500 ? new Error(detail) : new ServiceError(code, detail);
}

const readAnswer: ServiceRequest<unknown>["readAnswer"] = async ({ body }) => body.json();

async function requestAssignment(
  requestService: RequestService,
  signal: AbortSignal,
): Promise<Assignment> {
  return assignment.parse(
    await requestService({ method: "GET", path: "", statuses: [200], signal, readAnswer }),
  );
}

async function askForSource(
  requestService: RequestService,
  source: string,
  signal: AbortSignal,
): Promise<LocatedSource> {
  return requestService({
    method: "POST",
    path: "/sources",
    headers: () => ({ "content-type": "application/json" }),
    body: () => JSON.stringify({ source }),
    statuses: [200, 422],
    signal,
    async readAnswer({ statusCode, body }) {
      const answer = await body.json();
      if (statusCode === 200) return locatedSource.parse(answer);
      const { code, detail } = problem.parse(answer);
      throw new ServiceError(code, detail);
    },
  });
}

async function postEvents(
  requestService: RequestService,
  events: readonly string[],
  signal: AbortSignal,
): Promise<EventsAnswer> {
  const answer = await requestService({
    method: "POST",
    path: "/events",
    headers: () => ({ "content-type": "application/json" }),
    body: () => `{"events":[${events.join(",")}]}`,
    statuses: [200],
    signal,
    readAnswer,
  });
  return workerEventsAnswer.parse(answer);
}

/** The service refused the request. 401 and 403 are retried for a while, all else is final. */
export class ServiceRefusal extends Error {
  readonly status: number;
  readonly code: ErrorCode | undefined;

  constructor(message: string, { status, code }: { status: number; code: ErrorCode | undefined }) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Requests have failed for longer than the worker waits. */
export class ServiceOutage extends Error {}

/** The service counts too many requests of this worker, and says when to send the next. */
class RequestLimit extends Error {
  readonly retryMs: number;

  constructor(message: string, retryMs: number) {
    super(message);
    this.retryMs = retryMs;
  }
}

const maxRetryMs = 5_000;
const maxRequestedRetryMs = 60_000;
const responseTimeoutMs = 30_000;
/** A PUT is answered when its file is flushed to the disk. */
const uploadTimeoutMs = 10 * 60_000;

interface Address {
  readonly base: string;
  readonly token: () => string;
  readonly dispatcher: Dispatcher;
}

interface RequestOptions extends Address {
  /** How long requests are repeated while the service is unreachable, milliseconds. */
  readonly outageMs: number;
  /** How long requests are repeated while the service refuses the token, milliseconds. */
  readonly rejectionMs: number;
  readonly noteOutage: NoteOutage;
}

/** Called with each failure of a request, and how long it has failed, milliseconds. */
type NoteOutage = (cause: unknown, failingMs: number) => void;

/** Requests fail side by side, and each many times: they are reported only now and then. */
function createOutageNotes(reports: OutageReports | undefined): NoteOutage {
  if (reports === undefined) return () => {};
  const { everyMs, report } = reports;
  let notedAt = -Infinity;
  return (cause, failingMs) => {
    const now = performance.now();
    if (failingMs < everyMs || now < notedAt + everyMs) return;
    notedAt = now;
    report(serviceOutageError(cause, failingMs).message);
  };
}

/**
 * Repeats a request until it is answered. A transfer that gets further restarts the time limits.
 * @throws ServiceRefusal, ServiceOutage, ServiceError storage_full, too_many_bytes
 */
async function requestWithRetry<T>(
  question: ServiceRequest<T>,
  { rejectionMs, outageMs, noteOutage, ...address }: RequestOptions,
): Promise<T> {
  const { signal, countTransferred: countDone } = question;
  const delayAfter = (error: unknown, failures: number, failingMs: number) => {
    const failure = storageError(error);
    if (isFinalFailure(failure)) throw failure;
    // Throttling does not count as an outage.
    if (failure instanceof RequestLimit) return failure.retryMs;
    const isRefused = failure instanceof ServiceRefusal;
    if (!isRefused) noteOutage(failure, failingMs);
    if (failingMs < (isRefused ? rejectionMs : outageMs)) return backOffMs(failures, maxRetryMs);
    throw isRefused ? failure : serviceOutageError(failure, failingMs);
  };
  return retry(async () => requestOnce(question, address), delayAfter, { signal, countDone });
}

function isFinalFailure(error: unknown): boolean {
  return (
    error instanceof ServiceError ||
    (error instanceof ServiceRefusal && ![401, 403].includes(error.status))
  );
}

function serviceOutageError(cause: unknown, waitedMs: number): ServiceOutage {
  const duration = `${Math.round(waitedMs / 1000)} s`;
  const message = `The worker's requests have failed for ${duration}: ${errorMessage(cause)}`;
  return new ServiceOutage(message, { cause });
}

async function requestOnce<T>(
  { method, path, headers, body, statuses, signal, readAnswer }: ServiceRequest<T>,
  { base, token, dispatcher }: Address,
): Promise<T> {
  const answer = await request(`${base}${path}`, {
    dispatcher,
    method,
    headers: { ...headers?.(), authorization: `Bearer ${token()}` },
    body: body?.() ?? null,
    signal: signal ?? null,
    headersTimeout: method === "PUT" ? uploadTimeoutMs : responseTimeoutMs,
    bodyTimeout: responseTimeoutMs,
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
  const retrySeconds = Number(headers["retry-after"] ?? Number.NaN);
  if (status === 429 && retrySeconds >= 0)
    return new RequestLimit(message, Math.min(retrySeconds * 1000, maxRequestedRetryMs));
  if (status === 429 || status >= 500) return new Error(message);
  return new ServiceRefusal(message, { status, code });
}

function parseProblemCode(text: string): ErrorCode | undefined {
  return text === "" ? undefined : problem.parse(JSON.parse(text)).code;
}
