import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import type { TestContext } from "node:test";
import {
  type Assignment,
  type WorkerEvent,
  workerEvents,
} from "../../src/contract/worker-protocol/messages.ts";
import type { BlobStore } from "../../src/storage/blob-store.ts";
import { storeSentBlob } from "../support/store-sent-blob.ts";
import { ChangeSignal } from "../support/until.ts";

interface StandInService {
  readonly url: string;
  /** Events recorded, each once. */
  readonly events: WorkerEvent[];
  /** Answers 503 to so many more requests. */
  outages: number;
  /** Records so many more requests' events, but cuts the connection instead of answering. */
  lostAnswers: number;
  cancelled: boolean;
  /** Of events, bytes. */
  largestBody: number;
  /** Bearer token of the worker that is known. */
  token: string;
  /** Resolves when an event fits. */
  waitFor(fits: (event: WorkerEvent) => boolean): Promise<WorkerEvent>;
  close(): void;
}

/** The endpoints that a worker calls, on a real socket, recording events in memory. */
export async function standInService(
  t: Pick<TestContext, "after">,
  assignment: Pick<Assignment, "id">,
  openBlobs?: () => Promise<BlobStore>,
): Promise<StandInService> {
  const received = new ChangeSignal();
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.headers.authorization !== `Bearer ${service.token}`) return answer(401, {});
    if (service.outages > 0) {
      service.outages--;
      return answer(503, {});
    }
    if (request.url === `/worker/v1/jobs/${assignment.id}`) return answer(200, assignment);
    if (openBlobs && (await storeSentBlob(request, response, await openBlobs()))) return;
    assert.equal(request.url, `/worker/v1/jobs/${assignment.id}/events`);
    const bytes = Number(request.headers["content-length"]);
    service.largestBody = Math.max(service.largestBody, bytes);
    let nextSeq = 1 + service.events.length;
    for (const event of workerEvents.parse(await json(request)).events) {
      if (event.seq !== nextSeq) continue;
      service.events.push(event);
      nextSeq++;
    }
    received.notify();
    if (service.lostAnswers > 0) {
      service.lostAnswers--;
      return response.destroy();
    }
    return answer(200, { nextSeq, cancelled: service.cancelled });
  };
  const server = createServer((request, response) => void handle(request, response)).listen(
    0,
    "127.0.0.1",
  );
  await once(server, "listening");
  const address = server.address();
  assert(address !== null && typeof address === "object");
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  t.after(close);
  const events: WorkerEvent[] = [];
  const waitFor = (fits: (event: WorkerEvent) => boolean) =>
    received.until(`an event fits ${String(fits)}`, () => events.find(fits));
  const url = `http://127.0.0.1:${address.port}`;
  const service: StandInService = {
    url,
    events,
    outages: 0,
    lostAnswers: 0,
    cancelled: false,
    largestBody: 0,
    token: "secret",
    waitFor,
    close,
  };
  return service;
}
