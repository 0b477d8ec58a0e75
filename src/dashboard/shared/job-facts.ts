import { flattenFields } from "./format.ts";
import type { Job } from "../../contract/jobs/job.ts";

export type ComparedJob = Pick<Job, "model" | "recipe" | "telemetry">;

/** What a job was requested and measured with, by the names of the fields. */
export function listJobFacts({
  model,
  recipe,
  telemetry,
}: ComparedJob): ReadonlyMap<string, string> {
  const { name, runtime, executionProvider, threads } = telemetry.device ?? {};
  const measuredWith = { processor: name, runtime, executionProvider, threads };
  return new Map([
    ["model file", model.actualSha256?.slice(0, 12) ?? "none"],
    ...flattenFields(recipe),
    ...flattenFields(telemetry.device === undefined ? {} : measuredWith),
  ]);
}
