import type { Hono } from "hono";
import { ServiceError } from "../contract/errors.ts";
import { type JobStatus, jobStatus } from "../contract/status.ts";
import type { ServerContext } from "./server-context.ts";

/** Probes, which need no token. */
export function bindHealth(app: Hono, context: ServerContext): void {
  app.get("/healthz", (c) => {
    const problem = context.executor.livenessProblem?.();
    return problem === undefined ? c.text("ok\n") : c.text(`${problem}\n`, 503);
  });
  app.get("/readyz", async (c) => {
    const problem = await findReadinessProblem(context);
    return problem === undefined ? c.text("ok\n") : c.text(`${problem}\n`, 503);
  });
}

/** Metrics of the requests that `counted` answers; they need no token. */
export function bindMetrics(app: Hono, counted: Hono, context: ServerContext): void {
  const requests = countRequests(counted);
  app.get("/metrics", async (c) => {
    const text = metricsText(await context.records.jobs.countByStatus(), requests);
    return c.body(text, 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" });
  });
}

/** Requests by their labels in Prometheus' text format. */
function countRequests(app: Hono): ReadonlyMap<string, number> {
  const requests = new Map<string, number>();
  app.use(async (c, next) => {
    await next();
    const labels = `{method="${c.req.method}",status="${c.res.status}"}`;
    requests.set(labels, (requests.get(labels) ?? 0) + 1);
  });
  return requests;
}

/** @throws ServiceError unavailable */
async function findReadinessProblem({
  records,
  executor,
}: ServerContext): Promise<string | undefined> {
  await records.jobs.check().catch((cause: unknown) => {
    throw new ServiceError("unavailable", "The service's records cannot be read", { cause });
  });
  return executor.readinessProblem();
}

/** Prometheus' text format. */
function metricsText(
  jobs: ReadonlyMap<JobStatus, number>,
  requests: ReadonlyMap<string, number>,
): string {
  return [
    "# HELP mos_jobs Jobs in each status.",
    "# TYPE mos_jobs gauge",
    ...jobStatus.options.map((status) => `mos_jobs{status="${status}"} ${jobs.get(status) ?? 0}`),
    "# HELP mos_http_requests_total HTTP requests answered.",
    "# TYPE mos_http_requests_total counter",
    ...[...requests].map(([labels, count]) => `mos_http_requests_total${labels} ${count}`),
    "",
  ].join("\n");
}
