import { z } from "zod";
import { number } from "../settings/environment-values.ts";
import { keptDays } from "./kept-days.ts";

function days(kept: string) {
  return keptDays
    .optional()
    .describe(
      [
        `Days for which ${kept}; without it for good. Projects have others in a list such as`,
        "`30,team-a=7,team-b=forever`.",
      ].join(" "),
    );
}

/** Environment variables that say where the service keeps what, and for how long. */
export const storageSettings = {
  MOS_DATABASE_URL: z
    .url({
      protocol: /^postgres(ql)?$/,
      error: "must be an address such as postgres://user:password@host:5432/name",
    })
    .optional()
    .describe(
      [
        "PostgreSQL database of the records, such as `postgres://user:password@host:5432/name`,",
        "for this service and its replicas alone; without it they are in `MOS_DATA_DIR`.",
      ].join(" "),
    ),
  MOS_DISK_RESERVE_BYTES: number
    .pipe(z.int().min(0))
    .default(256 * 1024 ** 2)
    .describe(
      [
        "Bytes of the disk that uploads, results and new jobs leave free for records of what runs,",
        "at most a tenth of the disk.",
      ].join(" "),
    ),
  MOS_KEEP_JOBS_DAYS: days(
    "jobs and batches are kept after their end, with logs, artifacts and baselines",
  ),
  MOS_KEEP_LOGS_DAYS: days("logs of jobs are kept after their end"),
  MOS_KEEP_ARTIFACTS_DAYS: days("artifacts of jobs are kept after their end"),
  MOS_KEEP_MODELS_DAYS: days("uploaded models are kept after a job last named them"),
};
