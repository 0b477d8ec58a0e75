import type { Job, JobRequest } from "../../contract/jobs/job.ts";
import { isTerminal, type JobKind } from "../../contract/jobs/status.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { formatDuration } from "../shared/format.ts";

export const startRoutes = { compress: "startCompression", quantize: "startQuantization" } as const;

/** Plans a job by a dry run, which is deleted: the list is of jobs that somebody wanted. */
export async function planJob(kind: JobKind, request: Omit<JobRequest, "dryRun">): Promise<Job> {
  const { id } = await service.call(startRoutes[kind], { body: { ...request, dryRun: true } });
  const params = { id };
  const planned = await service.call("getJob", { params, headers: { prefer: "wait=60" } });
  if (isTerminal(planned.status) && mayDo("deleteWork")) {
    await service.callEmpty("deleteJob", { params });
  }
  return planned;
}

/** The size that a plan predicts and what the job would take, or why there is none. */
export function describePlan({ telemetry, error, statusMessage }: Job): string {
  const { size, forecast } = telemetry;
  if (!size) return error?.message ?? statusMessage;
  const percent = Math.round(100 * size.ratio);
  const text = `${formatBytes(size.resultBytes)}, ${percent} % of ${formatBytes(size.originalBytes)}`;
  if (!forecast) return text;
  const { peakMemoryBytes, diskBytes, seconds } = forecast;
  const costs = `${formatBytes(peakMemoryBytes)} of memory and ${formatBytes(diskBytes)} of disk`;
  const time = seconds === undefined ? "time not known yet" : formatDuration(seconds * 1000);
  return `${text}; the job takes about ${costs}, ${time}`;
}
