import { quotaError } from "../contract/quota-error.ts";
import type { ResourceReference } from "./resource-reference.ts";
import type { WriteTransaction } from "./store.ts";
import { readWaitingJobs } from "./usage-records.ts";

/** Jobs that wait end within minutes, or not at all soon. */
const retrySeconds = 60;

interface AddedJobs {
  readonly jobs: readonly unknown[];
  readonly resource?: ResourceReference | undefined;
}

/**
 * Requires room for jobs that a request adds; resources of a cluster exist already when they are
 * recorded.
 * @throws ServiceError too_many_jobs where more jobs of the project would wait than it may have
 */
export async function requireWaitingRoom(
  { trx, maxWaitingJobs }: WriteTransaction,
  project: string,
  { jobs: { length: added }, resource }: AddedJobs,
): Promise<void> {
  const isRequested = (resource?.uid ?? null) === null;
  if (!isRequested || maxWaitingJobs === Infinity) return;
  const waiting = await readWaitingJobs(trx, project);
  if (waiting + added <= maxWaitingJobs) return;
  const waitingJobs = `${waiting} jobs of the project wait, of ${maxWaitingJobs} at most`;
  throw quotaError({
    code: "too_many_jobs",
    message: `${waitingJobs}, and ${added} were asked for`,
    name: "waiting-jobs",
    size: maxWaitingJobs,
    retrySeconds,
  });
}
