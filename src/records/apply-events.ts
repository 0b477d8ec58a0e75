import type { Job } from "../contract/jobs/job.ts";
import { applyEvent, type JobEvent } from "./apply-event.ts";

/** The job after several events at one time. */
export function applyEvents(job: Job, events: readonly JobEvent[], now: Date): Job {
  return events.reduce((known, event) => applyEvent(known, event, now), job);
}
