import { type Batch, batch as batchSchema, batchSummary } from "../../contract/batches/batch.ts";
import { parseResource } from "./find-record.ts";
import type { WriteTransaction } from "../database/store.ts";
import type { BatchSource } from "./suite-records.ts";

export async function findBatch(
  trx: WriteTransaction["trx"],
  project: string,
  id: string,
): Promise<Batch | undefined> {
  const row = await trx
    .selectFrom("batches")
    .select("document")
    .where("id", "=", id)
    .where("project", "=", project)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const jobs = await trx
    .selectFrom("jobs")
    .select(["id", "model_name as model", "target", "status", "gates_failed"])
    .where("batch_id", "=", id)
    .orderBy("id")
    .execute();
  return batchSchema.parse({
    ...batchSummary.parse(JSON.parse(row.document)),
    jobs: jobs.map(({ gates_failed, ...job }) => ({ ...job, gatesFailed: gates_failed === 1 })),
  });
}

/** Where a batch comes from. */
export async function findBatchSource(
  trx: WriteTransaction["trx"],
  id: string,
): Promise<BatchSource> {
  const row = await trx
    .selectFrom("batches")
    .select(["repository_id", "resource"])
    .where("id", "=", id)
    .executeTakeFirst();
  const isResource = parseResource(row?.resource ?? null)?.isSource ?? false;
  return { repository: row?.repository_id ?? null, isResource };
}
