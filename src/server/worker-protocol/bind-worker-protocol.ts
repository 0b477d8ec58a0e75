import type { Hono } from "hono";
import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import { reportedBlob } from "../../contract/worker-protocol/transfers.ts";
import { type WorkerEvent, workerEvents } from "../../contract/worker-protocol/messages.ts";
import type { HeldMemory } from "../http/body-memory.ts";
import { parseBody, readJson } from "../http/read-request.ts";
import type { ServerContext } from "../http/server-context.ts";
import { authenticateWorker, requireReportedBlobs } from "./worker-access.ts";

/** Assignments and events of workers, whose token is valid for one attempt at one job. */
export function bindWorkerProtocol(app: Hono, context: ServerContext): void {
  app.get("/worker/v1/jobs/:id", async (c) => {
    return c.json(await readAssignment(context, c.req.param("id"), c.req.raw));
  });
  app.post("/worker/v1/jobs/:id/events", async (c) => {
    return c.json(await recordEvents(context, c.req.param("id"), c.req.raw));
  });
}

/** An assignment reads this job and those before it, which are as much as many requests. */
const assignmentCost = 20;

/** @throws ServiceError job_finished where the attempt has ended */
async function readAssignment(context: ServerContext, id: string, request: Request) {
  const { records } = context;
  const { attempt, countRequests } = await authenticateWorker(context, request, id);
  countRequests(assignmentCost);
  const assignment = await records.workers.findAssignment(id, attempt);
  if (assignment) {
    const earlierCosts = await records.workers.findEarlierCosts(id);
    return { ...assignment, earlierCosts, limits: context.limits };
  }
  throw new ServiceError("job_finished", `Attempt ${attempt} at job "${id}" is over`);
}

/** Bytes of events that cost as much as a request does. */
const requestBytes = 32 * 1024;
/** A pod's log, which is searched for what is missing, is as large as many requests. */
const searchCost = 300;

/**
 * Records the events, after those before them that the service has not received, where something
 * keeps them.
 * @throws ServiceError unavailable where earlier events are still missing
 */
async function recordEvents(context: ServerContext, id: string, request: Request) {
  const { records } = context;
  const worker = await authenticateWorker(context, request, id);
  const { attempt, catchUp } = worker;
  const bytes = Number(request.headers.get("content-length") ?? limits.workerBodyBytes);
  worker.countRequests(Math.floor(Math.min(bytes, limits.workerBodyBytes) / requestBytes));
  using held = context.quotas.bodies.ofWorker(id);
  const events = await readEvents(request, held);
  // Each is looked for in the store.
  worker.countRequests(events.filter((event) => reportedBlob(event) !== undefined).length);
  await requireReportedBlobs(context, id, events);
  const answer = await records.workers.recordEvents(id, attempt, events);
  if (events.length === 0) return answer;
  const first = Math.min(...events.map(({ seq }) => seq));
  if (catchUp === undefined || answer.cancelled || answer.nextSeq >= first) return answer;
  worker.countRequests(searchCost);
  await catchUp();
  const caughtUp = await records.workers.recordEvents(id, attempt, events);
  if (caughtUp.nextSeq >= first) return caughtUp;
  throw new ServiceError("unavailable", `Event ${caughtUp.nextSeq} is awaited`, {
    headers: { "retry-after": "1" },
  });
}

async function readEvents(request: Request, held: HeldMemory): Promise<readonly WorkerEvent[]> {
  return parseBody(workerEvents, await readJson(request, limits.workerBodyBytes, held)).events;
}
