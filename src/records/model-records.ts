import { sql } from "kysely";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { ModelPage, ModelQuery } from "../contract/model-routes.ts";
import type { Origin } from "../contract/owner.ts";
import { liveStatuses } from "../contract/status.ts";
import { buildPage, parseCursor } from "./build-page.ts";
import type { Reading } from "./delete-jobs.ts";
import { releaseBlobs } from "./release-blobs.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

interface UploadSearch {
  readonly project: string;
  /** Of the workflow that uploaded it; undefined for any. */
  readonly repository: Origin["repository"] | undefined;
}

const cursorPattern = /^\d{4}-[0-9:.TZ-]{10,30} [0-9a-f]{64} \S{0,200}$/;

/** Uploaded models of projects, as lists and deletions see them. */
export function modelRecords(store: Store) {
  return {
    list: (search: UploadSearch, query: ModelQuery) => listUploads(store, search, query),

    /**
     * Forgets an upload; false where there is none.
     * @throws ServiceError model_in_use
     */
    delete: (search: UploadSearch, sha256: string) =>
      runWriteTransaction(store, (writing) => deleteUpload(writing, search, sha256)),
  };
}

async function listUploads(
  { db }: Store,
  { project, repository }: UploadSearch,
  { cursor, limit }: ModelQuery,
): Promise<ModelPage> {
  let uploads = db.selectFrom("project_blobs").where("project", "=", project);
  if (repository !== undefined) uploads = uploads.where("repository_id", "=", repository);
  if (cursor !== undefined) {
    const last = parseCursor(cursor, z.string().regex(cursorPattern)).split(" ");
    uploads = uploads.where(
      sql<boolean>`(created_at, sha256, repository_id) < (${last[0]}, ${last[1]}, ${last[2]})`,
    );
  }
  const rows = await uploads
    .select(["created_at", "sha256", "repository_id", "bytes"])
    .orderBy("created_at", "desc")
    .orderBy("sha256", "desc")
    .orderBy("repository_id", "desc")
    .limit(limit + 1)
    .execute();
  const identified = rows.map(({ created_at: createdAt, repository_id, ...blob }) => {
    return { ...blob, createdAt, id: `${createdAt} ${blob.sha256} ${repository_id}` };
  });
  const { entries, nextCursor } = buildPage(identified, limit);
  const models = entries.map(({ id: _, ...blob }) => {
    return { source: `upload:sha256:${blob.sha256}`, ...blob };
  });
  return { models, nextCursor };
}

async function deleteUpload(
  writing: WriteTransaction,
  { project, repository }: UploadSearch,
  sha256: string,
): Promise<boolean> {
  const user = await findJobThatUses(writing, project, sha256);
  let uploads = writing.trx
    .deleteFrom("project_blobs")
    .where("project", "=", project)
    .where("sha256", "=", sha256);
  if (repository !== undefined) uploads = uploads.where("repository_id", "=", repository);
  const { numDeletedRows } = await uploads.executeTakeFirstOrThrow();
  if (numDeletedRows === 0n) return false;
  if (user !== undefined) {
    throw new ServiceError("model_in_use", `Model "${sha256}" is needed by job "${user}"`);
  }
  await releaseBlobs(writing, [sha256]);
  return true;
}

/** A job of the project that has not ended and names the upload. */
export async function findJobThatUses(
  { trx }: Reading,
  project: string,
  sha256: string,
): Promise<string | undefined> {
  const source = `upload:sha256:${sha256}`;
  for (const column of ["model_source", "evaluation_data"] as const) {
    const row = await trx
      .selectFrom("jobs")
      .select("id")
      .where("project", "=", project)
      .where(column, "=", source)
      .where("status", "in", liveStatuses)
      .limit(1)
      .executeTakeFirst();
    if (row) return row.id;
  }
  return undefined;
}
