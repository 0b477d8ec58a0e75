import type { Hono } from "hono";
import { ServiceError } from "../contract/errors.ts";
import { workerEvents } from "../contract/worker.ts";
import { hashSecret } from "./access-token.ts";
import { bearerOf, invalidToken } from "./authenticate.ts";
import { fieldErrors, validationError } from "./field-errors.ts";
import { notFound } from "./not-found.ts";
import { readJson } from "./read-request.ts";
import type { ServerContext } from "./server-context.ts";

/** What workers ask and tell; their token is good for one attempt at one job. */
export function bindWorkerProtocol(app: Hono, { records, limits }: ServerContext): void {
  const attemptOf = async (request: Request, jobId: string) => {
    const attempt = await records.workers.attemptOf(jobId, hashSecret(bearerOf(request)));
    if (attempt === undefined) throw invalidToken(`The token is not that of a worker of job "${jobId}"`);
    return attempt;
  };

  app.get("/worker/v1/jobs/:id", async (c) => {
    const id = c.req.param("id");
    const attempt = await attemptOf(c.req.raw, id);
    const assignment = await records.workers.assignment(id);
    if (!assignment) throw notFound("job", id);
    if (assignment.attempt !== attempt) {
      throw new ServiceError("job_finished", `Attempt ${attempt} at job "${id}" is over`);
    }
    return c.json({ ...assignment, limits });
  });

  app.post("/worker/v1/jobs/:id/events", async (c) => {
    const id = c.req.param("id");
    const attempt = await attemptOf(c.req.raw, id);
    const told = workerEvents.safeParse(await readJson(c.req.raw));
    if (!told.success) throw validationError(fieldErrors("", told.error));
    return c.json(await records.workers.apply(id, attempt, told.data.events));
  });
}
