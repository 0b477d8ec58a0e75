import type { JobStatus } from "../../contract/jobs/status.ts";
import type { CompressionJobObject } from "../../resources/custom-resources.ts";
import { resourceStatus } from "./desired-status.ts";

const begunStatuses: ReadonlySet<JobStatus> = new Set(["Sharding", "Optimizing", "Completed"]);

/** Whether a worker has worked on the job of a resource: the service gave it an assignment. */
export function hasBegun(resource: CompressionJobObject): boolean {
  const { status, transitions = [] } = resourceStatus(resource);
  return [status, ...transitions.map((each) => each.status)].some((each) =>
    begunStatuses.has(each),
  );
}
