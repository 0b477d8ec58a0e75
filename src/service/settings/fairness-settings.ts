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
  MOS_PROJECT_RUNNING_JOBS: number
    .pipe(z.int().min(1))
    .optional()
    .describe(
      [
        "Jobs of a project that run at once where there are other projects; without it all but",
        "one of `MOS_WORKERS`. In a cluster a queue of Kueue decides instead.",
      ].join(" "),
    ),
  MOS_PROJECT_WEIGHTS: z
    .string()
    .default("")
    .transform(parseWeights)
    .describe(
      [
        "Jobs of a project that start for each job of another one, such as `team-a=3,team-b=2`;",
        "projects that are left out have 1. In a cluster a queue of Kueue decides instead.",
      ].join(" "),
    ),
};

function parseWeights(list: string, context: z.RefinementCtx): ReadonlyMap<string, number> {
  const entries = list.split(",").filter((entry) => entry !== "");
  const pairs = entries.map((entry) => /^([^=]+)=([1-9]\d{0,2})$/.exec(entry.trim()));
  if (pairs.includes(null)) {
    context.addIssue("must be a list of NAME=WEIGHT, with weights from 1 to 999");
  }
  return new Map(pairs.map((pair) => [pair?.[1] ?? "", Number(pair?.[2])]));
}
