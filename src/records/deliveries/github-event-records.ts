import type { Store } from "../database/store.ts";

/**
 * Events of GitHub that were received, so that none counts twice. They are kept forever: signatures
 * do not expire.
 */
export function githubEventRecords(store: Store) {
  return {
    /** False where the event was received before. */
    async begin(id: string): Promise<boolean> {
      const { numInsertedOrUpdatedRows } = await store.db
        .insertInto("github_deliveries")
        .values({ id })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst();
      return numInsertedOrUpdatedRows === 1n;
    },

    /** Lets GitHub deliver an event again that had no effect. */
    async abandon(id: string): Promise<void> {
      await store.db.deleteFrom("github_deliveries").where("id", "=", id).execute();
    },
  };
}
