import type { z } from "zod";
import { deletion } from "../contract/routes/event-routes.ts";
import { limits } from "../contract/limits.ts";
import { type ChangeSearch, changesPerPage, isReached } from "./change-search.ts";
import { documentHasLabel } from "./dialect-sql.ts";
import { parseLabel } from "./label-filter.ts";
import type { Store, WriteTransaction } from "./store.ts";

const dayMs = 24 * 3_600_000;

/** What is left of a job or batch. */
export interface DeletedRecord {
  readonly seq: number;
  readonly kind: "job" | "batch";
  readonly deletion: z.output<typeof deletion>;
}

/** What followers are sent of deletions. */
export async function listDeletions(
  trx: WriteTransaction["trx"],
  { batch, label = [], ...search }: ChangeSearch,
  after: number,
): Promise<DeletedRecord[]> {
  let deletions = trx.selectFrom("deletions").select(["seq", "kind", "document", "deleted_at"]);
  deletions = deletions.where(isReached(search)).where("seq", ">", after);
  if (batch !== undefined) deletions = deletions.where("batch_id", "=", batch);
  for (const filter of label.map(parseLabel)) {
    deletions = deletions.where(documentHasLabel(trx, filter));
  }
  const rows = await deletions.orderBy("seq").limit(changesPerPage).execute();
  return rows.map(({ seq, kind, document, deleted_at: deletedAt }) => {
    return { seq, kind, deletion: deletion.parse({ ...JSON.parse(document), deletedAt }) };
  });
}

/** Forgets deletions after their time. */
export async function forgetDeletions({ db, now }: Store): Promise<void> {
  const oldest = new Date(now().getTime() - limits.deletionDays * dayMs).toISOString();
  await db.deleteFrom("deletions").where("deleted_at", "<", oldest).execute();
}
