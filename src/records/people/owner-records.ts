import type { Origin, Owner } from "../../contract/people/principal.ts";
import type { Store } from "../database/store.ts";

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

interface OwnerColumns {
  readonly repository_id: string | null;
  readonly commit_sha: string | null;
}

export function originColumns(origin: Origin | null = null): OwnerColumns {
  return { repository_id: origin?.repository ?? null, commit_sha: origin?.commit ?? null };
}

export function parseOwner({
  project,
  repository_id: repository,
  commit_sha: commit,
}: OwnerColumns & { readonly project: string }): Owner {
  const isFromWorkflow = repository !== null && commit !== null;
  return { project, origin: isFromWorkflow ? { repository, commit } : null };
}
