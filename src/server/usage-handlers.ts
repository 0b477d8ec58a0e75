import type { RouteHandlers } from "./route-handlers.ts";

export const usageHandlers: Pick<RouteHandlers, "getUsage"> = {
  async getUsage({ records, quotas, executor }, { caller: { project } }) {
    const { waiting, running } = await records.usage.countJobs(project);
    const { requests, storage, waitingJobs } = quotas;
    const left = Math.max(0, Math.floor(requests.countLeft(project)));
    return {
      status: 200,
      json: {
        project,
        waitingJobs: { used: waiting, limit: waitingJobs },
        runningJobs: { used: running, limit: executor.projectRunningJobs ?? null },
        storedBytes: { used: await storage.usedBytes(project), limit: storage.maxBytes },
        requestsPerMinute: { used: requests.perMinute - left, limit: requests.perMinute },
      },
    };
  },
};
