import { isTerminal, jobStatus } from "../../contract/jobs/status.ts";
import type { ServiceStatus } from "../../contract/service-status.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import type { ServerContext } from "../http/server-context.ts";

const runningStatuses = jobStatus.options.filter(
  (status) => status !== "Pending" && !isTerminal(status),
);

export const statusHandlers: Pick<RouteHandlers, "getStatus"> = {
  async getStatus(context) {
    const { executor, now, about, readDiskSpace } = context;
    const { free, reserve, total } = await readDiskSpace();
    return {
      status: 200,
      json: {
        ...about,
        now: now().toISOString(),
        executor: executor.projectNamespace === undefined ? "local" : "cluster",
        problem: executor.readinessProblem() ?? null,
        jobs: await describeQueue(context),
        disk: { freeBytes: free, totalBytes: total, reserveBytes: reserve },
        memory: { residentBytes: process.memoryUsage.rss() },
      },
    };
  },
};

async function describeQueue({
  records,
  executor,
  now,
}: ServerContext): Promise<ServiceStatus["jobs"]> {
  const counts = await records.metrics.countByStatus();
  const oldest = await records.metrics.findOldestWaitingTime();
  const running = runningStatuses.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0);
  return {
    waiting: counts.get("Pending") ?? 0,
    running,
    longestWaitSeconds: oldest ? Math.max(0, (now().getTime() - oldest.getTime()) / 1000) : 0,
    workers: executor.workerCount ?? null,
  };
}

export const targetHandlers: Pick<RouteHandlers, "listTargets"> = {
  listTargets: async ({ targets }) => ({ status: 200, json: { targets: [...targets] } }),
};
