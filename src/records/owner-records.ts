import type { Owner } from "../contract/people/principal.ts";
import { parseOwner } from "./owner-columns.ts";
import type { Store } from "./store.ts";

/** Whose jobs and batches are. */
export function ownerRecords({ db }: Store) {
  const findIn = async (table: "jobs" | "batches", id: string): Promise<Owner | undefined> => {
    const row = await db
      .selectFrom(table)
      .select(["project", "repository_id", "commit_sha"])
      .where("id", "=", id)
      .executeTakeFirst();
    return row && parseOwner(row);
  };
  return {
    findOfJob: (id: string) => findIn("jobs", id),
    findOfBatch: (id: string) => findIn("batches", id),
  };
}
