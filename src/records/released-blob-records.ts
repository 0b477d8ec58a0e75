import { blobTables } from "./list-referenced-blobs.ts";
import type { Store } from "./store.ts";

const maxPerCall = 500;

/** Blobs of deleted records. */
export function releasedBlobRecords({ db }: Store) {
  return {
    /** Hashes that were released before a time and that no record names, a part of them. */
    async listUnused(before: Date): Promise<string[]> {
      let released = db
        .selectFrom("released_blobs")
        .select("released_blobs.sha256")
        .where("released_at", "<", before.toISOString());
      for (const table of blobTables) {
        released = released.where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom(table)
                .select("sha256")
                .whereRef(`${table}.sha256`, "=", "released_blobs.sha256"),
            ),
          ),
        );
      }
      const rows = await released.orderBy("released_at").limit(maxPerCall).execute();
      return rows.map(({ sha256 }) => sha256);
    },

    /** After the file was deleted. */
    async forget(sha256: string): Promise<void> {
      await db.deleteFrom("released_blobs").where("sha256", "=", sha256).execute();
    },

    /** Forgets those that were released before a time: a record names what is left of them. */
    async forgetAll(before: Date): Promise<void> {
      await db
        .deleteFrom("released_blobs")
        .where("released_at", "<", before.toISOString())
        .execute();
    },
  };
}
