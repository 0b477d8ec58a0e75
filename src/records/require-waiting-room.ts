import { quotaError } from "../contract/people/usage.ts";
import type { WriteTransaction } from "./store.ts";
import { readWaitingJobs } from "./usage-records.ts";

/** Jobs that wait end within minutes, or not at all soon. */
const retrySeconds = 60;

/**
 * Requires room for jobs that a request adds.
 * @throws ServiceError too_many_jobs where more jobs of the project would wait than it may have
 */
export async function requireWaitingRoom(
  { trx, maxWaitingJobs }: WriteTransaction,
  project: string,
  { length: added }: readonly unknown[],
): Promise<void> {
  if (maxWaitingJobs === Infinity) return;
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
