import type { WriteTransaction } from "./store.ts";

/** From then on no new job is compared with the jobs, which are deleted in several steps. */
export async function forgetBaselines(
  { trx }: WriteTransaction,
  jobIds: readonly string[],
): Promise<void> {
  if (jobIds.length === 0) return;
  await trx.deleteFrom("baselines").where("job_id", "in", jobIds).execute();
}
