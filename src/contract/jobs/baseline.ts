import { z } from "zod";
import { jobId } from "../id.ts";
import { commit } from "../revision.ts";
import { accuracy, type Telemetry, telemetry } from "./telemetry.ts";

const figures = telemetry.pick({ size: true, latency: true, device: true }).extend({
  accuracy: accuracy.omit({ outputs: true }).optional(),
});

/** What a completed job measured, kept for later jobs of the same suite, model and target. */
export const recordedBaseline = figures.extend({
  jobId: jobId.describe("The job that measured the figures."),
  sha: commit,
  branch: z.string(),
});
export type RecordedBaseline = z.infer<typeof recordedBaseline>;

/** What a job is compared with. */
export const baseline = recordedBaseline
  .extend({
    by: z
      .enum(["baseSha", "mergeBase", "branch"])
      .describe(
        "Which part of the revision's base it was found by; `branch`: it is the branch's newest.",
      ),
  })
  .meta({ id: "Baseline" });
export type Baseline = z.infer<typeof baseline>;

/** The part of a job's telemetry that later jobs are compared with. */
export function baselineFigures({
  size,
  latency,
  device,
  accuracy: measured,
}: Telemetry): z.infer<typeof figures> {
  return { size, latency, device, accuracy: figures.shape.accuracy.parse(measured) };
}
