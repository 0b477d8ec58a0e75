import { addStoredBytes } from "../database/counters.ts";
import type { Owner } from "../../contract/people/principal.ts";
import { addAuditEntry, type AuditedChange } from "../people/audit-records.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "../database/store.ts";

/** Stands for no repository, since columns of a primary key should not be null. */
const noRepository = "";

interface BlobSearch {
  readonly project: string;
  /** Of the workflow that uploaded it; undefined for any. */
  readonly repository: string | undefined;
  readonly sha256: string;
}

interface StoredFile {
  readonly sha256: string;
  readonly bytes: number;
}

/** Which uploads a project has. Equal files of several projects are stored once. */
export function projectBlobRecords(store: Store) {
  const { db } = store;
  return {
    async has({ project, repository, sha256 }: BlobSearch): Promise<boolean> {
      const uploads = selectProjectBlobs(db, project, repository);
      const row = await uploads.where("sha256", "=", sha256).limit(1).executeTakeFirst();
      return row !== undefined;
    },

    add: (owner: Owner, blob: StoredFile, audit?: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        await insertProjectBlob(writing, owner, blob);
        await addAuditEntry(writing, audit, blob.sha256);
      }),
  };
}

/** Uploads that a caller may use. */
export function selectProjectBlobs(db: Store["db"], project: string, repository?: string) {
  return db
    .selectFrom("project_blobs")
    .select(["sha256", "bytes"])
    .where("project", "=", project)
    .$if(repository !== undefined, (rows) =>
      rows.where("repository_id", "=", repository ?? noRepository),
    );
}

export async function insertProjectBlob(
  { trx, now }: WriteTransaction,
  { project, origin }: Owner,
  { sha256, bytes }: StoredFile,
): Promise<void> {
  const repository_id = origin?.repository ?? noRepository;
  const row = { project, repository_id, sha256, bytes, created_at: now.toISOString() };
  const { numUpdatedRows } = await trx
    .updateTable("project_blobs")
    .set({ created_at: row.created_at })
    .where("project", "=", project)
    .where("sha256", "=", sha256)
    .where("repository_id", "=", repository_id)
    .executeTakeFirst();
  if (numUpdatedRows > 0n) return;
  await trx.insertInto("project_blobs").values(row).execute();
  await addStoredBytes(trx, project, bytes);
}
