import { blobTables } from "./list-referenced-blobs.ts";
import type { Store } from "../database/store.ts";

const maxPerCall = 500;

/** Blobs of deleted records. */
export function releasedBlobRecords(store: Store) {
  return {
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

    /** After the file was deleted. */
    async forget(sha256: string): Promise<void> {
      await store.db.deleteFrom("released_blobs").where("sha256", "=", sha256).execute();
    },

    /** Forgets those that were released before a time: a record names what is left of them. */
    async forgetAll(before: Date): Promise<void> {
      const time = before.toISOString();
      await store.db.deleteFrom("released_blobs").where("released_at", "<", time).execute();
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
