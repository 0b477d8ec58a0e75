import { z } from "zod";
import { projectName } from "./project.ts";

const count = z.int().min(0);

/** How much of its quotas a project uses. */
export const usage = z
  .object({
    project: projectName,
    waitingJobs: z.object({
      used: count.describe("Jobs that wait for a worker."),
      limit: count.describe("Beyond it, new jobs are refused with `too_many_jobs`."),
    }),
    runningJobs: z.object({
      used: count.describe("Jobs that are worked on."),
      limit: count
        .nullable()
        .describe("Where there are other projects; null where the cluster decides."),
    }),
    storedBytes: z.object({
      used: count.describe(
        "Bytes of uploads, of artifacts and of interrupted uploads. A file counts once for each " +
          "repository that uploaded it and each job that made it.",
      ),
      limit: count.describe("Beyond it, files are refused with `too_many_bytes`."),
    }),
    requestsPerMinute: z.object({
      used: count.describe("Requests that count now; each counts less with time, and none later."),
      limit: count.describe("Beyond it, requests are refused with `too_many_requests`."),
    }),
  })
  .meta({ id: "Usage" });
