import { z } from "zod";

const count = z.int().min(0);
const bytes = z.number().min(0);

/** How the service itself is, for those who run it. */
export const serviceStatus = z
  .object({
    now: z.iso.datetime(),
    startedAt: z.iso.datetime().describe("When the process that answers was started."),
    versions: z.record(z.string(), z.string()).describe("Of the service and of what it runs on."),
    records: z.enum(["sqlite", "postgres"]).describe("The database."),
    executor: z
      .enum(["local", "cluster"])
      .describe("Whether jobs run as processes on this machine or in a cluster."),
    problem: z
      .string()
      .nullable()
      .describe("Why the service is not ready, as `/readyz` says; null where it is."),
    jobs: z.object({
      waiting: count,
      running: count,
      longestWaitSeconds: z.number().min(0).describe("0 where no job waits."),
      workers: count
        .nullable()
        .describe("Jobs that this process runs at once; null where the cluster decides."),
    }),
    disk: z
      .object({
        freeBytes: bytes,
        totalBytes: bytes,
        reserveBytes: bytes.describe("What new work leaves free for records."),
      })
      .describe("The disk that has the records, and the files that are in no bucket."),
    memory: z.object({
      residentBytes: bytes.describe("Of the service's process, without workers."),
    }),
  })
  .meta({ id: "ServiceStatus" });
export type ServiceStatus = z.infer<typeof serviceStatus>;
