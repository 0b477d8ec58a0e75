import type { ServiceClient } from "./service-client.ts";
import type { Places } from "../contract/jobs/github-report.ts";
import type { JobTracker } from "./job-tracker.ts";
import type { Submission } from "./submit-batches.ts";

/** The step's batches at the service. */
export interface SubmittedWork {
  readonly client: ServiceClient;
  readonly submission: Submission;
  readonly tracker: JobTracker;
  readonly places: Places;
}
