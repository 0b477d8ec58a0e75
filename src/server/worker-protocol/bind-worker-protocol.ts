import { listDataSources } from "../../contract/jobs/recipe-data.ts";
import type { Hono } from "hono";
import { readBearerToken } from "../../auth/authenticate.ts";
import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import { isSourceBeside } from "../../contract/models/model-source.ts";
import { type WorkerEvent, workerEvents } from "../../contract/jobs/worker.ts";
import { type LocatedSource, sourceQuestion } from "../../contract/jobs/worker-transfers.ts";
import { notFoundError } from "../http/problem-response.ts";
import { parseBody } from "../http/read-request.ts";
import { readJson } from "../http/read-json.ts";
import type { ServerContext } from "../http/server-context.ts";
import { requireReportedBlobs } from "./worker-blob-access.ts";

/** Assignments and events of workers, whose token is valid for one attempt at one job. */
export function bindWorkerProtocol(app: Hono, context: ServerContext): void {
  app.get("/worker/v1/jobs/:id", async (c) => {
    return c.json(await readAssignment(context, c.req.param("id"), c.req.raw));
  });
  app.post("/worker/v1/jobs/:id/events", async (c) => {
    return c.json(await recordEvents(context, c.req.param("id"), c.req.raw));
  });
  app.post("/worker/v1/jobs/:id/sources", async (c) => {
    return c.json(await findOwnSource(context, c.req.param("id"), c.req.raw));
  });
}

/** @throws ServiceError job_finished where the attempt has ended */
async function readAssignment(
  { records, executor, limits }: ServerContext,
  id: string,
  request: Request,
) {
  const { attempt } = await executor.workers.authenticate(readBearerToken(request), id);
  const assignment = await records.workers.findAssignment(id, attempt);
  if (assignment) return { ...assignment, limits };
  throw new ServiceError("job_finished", `Attempt ${attempt} at job "${id}" is over`);
}

/**
 * Where a worker reads a file of its job that the project has credentials for: its model, what
 * lies beside that, and its data.
 * @throws ServiceError not_found for files of no job of its; model_source_refused
 */
async function findOwnSource(
  { records, executor, sources }: ServerContext,
  id: string,
  request: Request,
): Promise<LocatedSource> {
  const { attempt } = await executor.workers.authenticate(readBearerToken(request), id);
  const assignment = await records.workers.findAssignment(id, attempt);
  const owner = await records.owners.findOfJob(id);
  const { source } = parseBody(sourceQuestion, await readJson(request, limits.jsonBodyBytes));
  const isOwn =
    assignment !== undefined &&
    (isSourceBeside(source, assignment.model.source) ||
      listDataSources(assignment.recipe).includes(source));
  if (owner === undefined || !isOwn) throw notFoundError("source", source);
  return sources.locate(owner.project, source);
}

/**
 * Records the events, after those before them that the service has not received, where something
 * keeps them.
 * @throws ServiceError unavailable where earlier events are still missing
 */
async function recordEvents(context: ServerContext, id: string, request: Request) {
  const { records, executor } = context;
  const { attempt, catchUp } = await executor.workers.authenticate(readBearerToken(request), id);
  const events = await readEvents(request);
  await requireReportedBlobs(context, id, events);
  const answer = await records.workers.recordEvents(id, attempt, events);
  if (events.length === 0) return answer;
  const first = Math.min(...events.map(({ seq }) => seq));
  if (catchUp === undefined || answer.cancelled || answer.nextSeq >= first) return answer;
  await catchUp();
  const caughtUp = await records.workers.recordEvents(id, attempt, events);
  if (caughtUp.nextSeq >= first) return caughtUp;
  throw new ServiceError("unavailable", `Event ${caughtUp.nextSeq} is awaited`, {
    headers: { "retry-after": "1" },
  });
}

async function readEvents(request: Request): Promise<readonly WorkerEvent[]> {
  return parseBody(workerEvents, await readJson(request, limits.jsonBodyBytes)).events;
}
