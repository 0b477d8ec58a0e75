import { sql } from "kysely";
import type { WriteTransaction } from "./store.ts";

type Trx = WriteTransaction["trx"];

/*
 * Figures that are read too often to count rows. Each is changed in the transaction that changes
 * the rows, by the function that does.
 */

/** Jobs of a project that are Pending. */
export async function addWaitingJobs(trx: Trx, project: string, jobs: number): Promise<void> {
  if (jobs === 0) return;
  await trx
    .insertInto("waiting_jobs")
    .values({ project, jobs })
    .onConflict((conflict) =>
      conflict.column("project").doUpdateSet({ jobs: sql`waiting_jobs.jobs + excluded.jobs` }),
    )
    .execute();
}

/** Bytes of a project's uploads and of its jobs' artifacts. */
export async function addStoredBytes(trx: Trx, project: string, bytes: number): Promise<void> {
  if (bytes === 0) return;
  await trx
    .insertInto("project_usage")
    .values({ project, stored_bytes: bytes })
    .onConflict((conflict) =>
      conflict.column("project").doUpdateSet({
        stored_bytes: sql`project_usage.stored_bytes + excluded.stored_bytes`,
      }),
    )
    .execute();
}

/** Deliveries of a webhook that have a next attempt. */
export async function addWaitingDeliveries(
  trx: Trx,
  webhookId: string,
  deliveries: number,
): Promise<void> {
  if (deliveries === 0) return;
  await trx
    .updateTable("webhooks")
    .set((eb) => ({ waiting_deliveries: eb("waiting_deliveries", "+", deliveries) }))
    .where("id", "=", webhookId)
    .execute();
}
