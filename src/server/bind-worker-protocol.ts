import type { Hono } from "hono";
import { ServiceError } from "../contract/errors.ts";
import { workerEvents } from "../contract/worker.ts";
import { readBearerToken } from "../auth/authenticate.ts";
import { fieldErrors, validationError } from "./field-errors.ts";
import { readJson } from "./read-request.ts";
import type { ServerContext } from "./server-context.ts";

/** What workers ask and tell; their token is good for one attempt at one job. */
export function bindWorkerProtocol(app: Hono, { records, limits, executor }: ServerContext): void {
  app.get("/worker/v1/jobs/:id", async (c) => {
    const id = c.req.param("id");
    const { attempt } = await executor.workers.authenticate(readBearerToken(c.req.raw), id);
    const assignment = await records.workers.findAssignment(id, attempt);
    if (!assignment)
      throw new ServiceError("job_finished", `Attempt ${attempt} at job "${id}" is over`);
    return c.json({ ...assignment, limits });
  });

  app.post("/worker/v1/jobs/:id/events", async (c) => {
    const id = c.req.param("id");
    const { attempt, catchUp } = await executor.workers.authenticate(
      readBearerToken(c.req.raw),
      id,
    );
    const parsed = workerEvents.safeParse(await readJson(c.req.raw));
    if (!parsed.success) throw validationError(fieldErrors("", parsed.error));
    const { events } = parsed.data;
    const answer = await records.workers.recordEvents(id, attempt, events);
    const first = Math.min(...events.map(({ seq }) => seq));
    if (catchUp === undefined || answer.cancelled || answer.nextSeq >= first) return c.json(answer);
    await catchUp();
    const caughtUp = await records.workers.recordEvents(id, attempt, events);
    if (caughtUp.nextSeq >= first) return c.json(caughtUp);
    throw new ServiceError("unavailable", `Event ${caughtUp.nextSeq} is awaited`, {
      headers: { "retry-after": "1" },
    });
  });
}
