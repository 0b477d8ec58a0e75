import { z } from "zod";
import { quotas } from "../../contract/limits.ts";
import { number } from "../../settings/parse-environment.ts";

/** Environment variables that say how much of the service a caller may use. */
export const fairnessSettings = {
  MOS_QUOTA_WAITING_JOBS: number
    .pipe(z.int().min(1))
    .default(quotas.waitingJobs)
    .describe("Jobs of a project that may wait when more are requested."),
  MOS_QUOTA_REQUESTS_PER_MINUTE: number
    .pipe(z.int().min(1))
    .default(quotas.requestsPerMinute)
    .describe("Requests of a project a minute."),
  MOS_QUOTA_EXCHANGES_PER_MINUTE: number
    .pipe(z.int().min(1))
    .default(quotas.exchangesPerMinute)
    .describe("Exchanges of identity tokens by one address a minute; see `MOS_TRUSTED_PROXIES`."),
  MOS_QUOTA_BYTES: number
    .pipe(z.int().min(1))
    .default(quotas.storedBytes)
    .describe("Bytes of a project's uploads and artifacts."),
  MOS_DEADLINE_SECONDS: number
    .pipe(z.int().min(1).max(604_800))
    .default(86_400)
    .describe(
      [
        "Seconds of work after which a job without a deadline of its own is stopped, and the",
        "longest that one may ask for. In a cluster the operator stops jobs by its own setting.",
      ].join(" "),
    ),
};
