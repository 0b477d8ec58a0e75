import type { Hono } from "hono";
import { ServiceError } from "../contract/errors.ts";
import { type JobStatus, jobStatus } from "../contract/status.ts";
import type { ServerContext } from "./server-context.ts";

/** What probes and monitoring ask, without a token. */
export function bindHealth(app: Hono, { records, executor }: ServerContext): void {
  const requests = new Map<string, number>();
  app.use(async (c, next) => {
    await next();
    const labels = `{method="${c.req.method}",status="${c.res.status}"}`;
    requests.set(labels, (requests.get(labels) ?? 0) + 1);
  });
  app.get("/healthz", (c) => c.text("ok\n"));
  app.get("/readyz", async (c) => {
    await records.jobs.countByStatus().catch((cause: unknown) => {
      throw new ServiceError("unavailable", "The service's records cannot be read", { cause });
    });
    const reason = executor.readinessProblem();
    if (reason !== undefined) return c.text(`${reason}\n`, 503);
    return c.text("ok\n");
  });
  app.get("/metrics", async (c) => {
    const text = metricsText(await records.jobs.countByStatus(), requests);
    return c.body(text, 200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" });
  });
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
