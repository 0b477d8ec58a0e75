import { blobTables } from "./list-referenced-blobs.ts";
import { releaseBlobs } from "./release-blobs.ts";
import { runWriteTransaction, type Store } from "../database/store.ts";

const maxPerCall = 500;

/** Blobs that were released: those of deleted records, and those that got none. */
export function releasedBlobRecords(store: Store) {
  const deleteReleased = (before: Date) =>
    store.db.deleteFrom("released_blobs").where("released_at", "<", before.toISOString());
  return {
    /** Has a blob deleted later that no record names by then. */
    add: (sha256: string): Promise<void> =>
      runWriteTransaction(store, (writing) => releaseBlobs(writing, [sha256])),

    /** Hashes that were released before a time and that no record names, a part of them. */
    async listUnused(before: Date): Promise<string[]> {
      const unused = selectUnused(store, before);
      const rows = await unused.orderBy("released_at").limit(maxPerCall).execute();
      return rows.map(({ sha256 }) => sha256);
    },

    /** Whether it is one of those still. */
    async isUnused(sha256: string, before: Date): Promise<boolean> {
      return (await selectUnused(store, before).where("sha256", "=", sha256).execute()).length > 0;
    },

    /** After the file was deleted, unless it was stored and released again meanwhile. */
    async forget(sha256: string, before: Date): Promise<void> {
      await deleteReleased(before).where("sha256", "=", sha256).execute();
    },

    /** Forgets those that were released before a time: a record names what is left of them. */
    async forgetAll(before: Date): Promise<void> {
      await deleteReleased(before).execute();
    },
  };
}

function selectUnused({ db }: Store, before: Date) {
  let released = db
    .selectFrom("released_blobs")
    .select("released_blobs.sha256")
    .where("released_at", "<", before.toISOString());
  for (const table of blobTables) {
    released = released.where((eb) => {
      const uses = eb.selectFrom(table).select("sha256");
      return eb.not(eb.exists(uses.whereRef(`${table}.sha256`, "=", "released_blobs.sha256")));
    });
  }
  return released;
}
