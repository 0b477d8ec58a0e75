import { z } from "zod";
import { job } from "./job.ts";

/** A job as its own resource shows it. */
export const jobDetail = job
  .extend({
    queuePosition: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe(
        "Place among the jobs that wait for a worker of this machine: 1 starts next. Null for a " +
          "job that does not wait, and in a cluster. Projects take turns, so that jobs of other " +
          "projects may still come before it.",
      ),
  })
  .meta({ id: "JobDetail" });
