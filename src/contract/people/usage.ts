import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { projectName } from "../project.ts";

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
      used: count.describe("Jobs that are worked on, or whose worker starts."),
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

interface UsedUpQuota {
  readonly code: "too_many_requests" | "too_many_jobs" | "too_many_bytes";
  readonly message: string;
  /** As headers name it. */
  readonly name: string;
  readonly size: number;
  /** Seconds that the size is for; absent where it is not a rate. */
  readonly windowSeconds?: number;
  readonly retrySeconds: number;
}

/**
 * The refusal of what is beyond a quota, with the headers of
 * draft-ietf-httpapi-ratelimit-headers.
 */
export function quotaError({
  code,
  message,
  name,
  size,
  windowSeconds,
  retrySeconds,
}: UsedUpQuota): ServiceError {
  const window = windowSeconds === undefined ? "" : `;w=${windowSeconds}`;
  return new ServiceError(code, message, {
    headers: {
      "retry-after": String(retrySeconds),
      "ratelimit-policy": `"${name}";q=${size}${window}`,
      ratelimit: `"${name}";r=0;t=${retrySeconds}`,
    },
  });
}
