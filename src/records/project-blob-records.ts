import type { Owner } from "../contract/owner.ts";
import type { Store } from "./store.ts";

/** Stands for no repository, since columns of a primary key should not be null. */
const noRepository = "";

interface BlobSearch {
  readonly project: string;
  /** Of the workflow that uploaded it; undefined for any. */
  readonly repository: string | undefined;
  readonly sha256: string;
}

/** Which uploads a project has. Equal files of several projects are stored once. */
export function projectBlobRecords({ db, now }: Store) {
  return {
    async has({ project, repository, sha256 }: BlobSearch): Promise<boolean> {
      const row = await db
        .selectFrom("project_blobs")
        .select("sha256")
        .where("project", "=", project)
        .where("sha256", "=", sha256)
        .$if(repository !== undefined, (rows) =>
          rows.where("repository_id", "=", repository ?? noRepository),
        )
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },

    async add({ project, origin }: Owner, blob: { sha256: string; bytes: number }): Promise<void> {
      const repository_id = origin?.repository ?? noRepository;
      const row = { project, repository_id, ...blob, created_at: now().toISOString() };
      await db
        .insertInto("project_blobs")
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    },
  };
}
