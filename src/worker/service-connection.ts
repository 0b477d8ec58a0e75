import type { z } from "zod";
import { problem, ServiceError } from "../contract/errors.ts";
import { type Assignment, assignment, workerEventsAnswer } from "../contract/jobs/worker.ts";
import { type LocatedSource, locatedSource } from "../contract/jobs/worker-transfers.ts";
import type { RequestService, ServiceRequest } from "../storage/service-request.ts";
import { requestWithRetry } from "./request-with-retry.ts";

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
  /** Requests about files. */
  readonly requestService: RequestService;
}

interface ServiceAddress {
  readonly url: string;
  readonly jobId: string;
  /** Called for each request: tokens of pods are replaced by new ones. */
  readonly token: () => string;
  readonly timeouts: RequestTimeouts;
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
  jobId,
  token,
  timeouts,
}: ServiceAddress): ServiceConnection {
  const base = `${url.replace(/\/$/, "")}/worker/v1/jobs/${jobId}`;
  const limitOutages = (outageMs: number): RequestService => {
    return async (request) =>
      requestWithRetry(request, { base, token, outageMs, rejectionMs: timeouts.token });
  };
  const requestStart = limitOutages(timeouts.start);
  const requestEvents = limitOutages(timeouts.events);
  const requestFiles = limitOutages(timeouts.files);
  return {
    findAssignment: (signal) => requestAssignment(requestStart, signal),
    sendEvents: (events, signal) => postEvents(requestEvents, events, signal),
    locateSource: (source, signal) => askForSource(requestFiles, source, signal),
    requestService: requestFiles,
  };
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
