import { z } from "zod";
import { quotas } from "../../contract/limits.ts";
import { number, yaml } from "../../settings/parse-environment.ts";

const amount = z.int().min(1);

/** What a project may use of the service. */
export const quotaFields = z.strictObject({
  waitingJobs: amount
    .default(quotas.waitingJobs)
    .describe("Jobs of a project that may wait when more are requested."),
  requestsPerMinute: amount
    .default(quotas.requestsPerMinute)
    .describe("Requests of a project a minute."),
  exchangesPerMinute: amount
    .default(quotas.exchangesPerMinute)
    .describe("Exchanges of identity tokens by one address a minute; see `MOS_TRUSTED_PROXIES`."),
  storedBytes: amount
    .default(quotas.storedBytes)
    .describe("Bytes of a project's uploads and artifacts."),
});

/** Environment variables that say how much of the service a caller may use. */
export const quotaSettings = {
  MOS_QUOTAS: yaml(quotaFields)
    .prefault("{}")
    .describe("YAML of the quotas, such as `{requestsPerMinute: 1200, storedBytes: 1000000000}`."),
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
