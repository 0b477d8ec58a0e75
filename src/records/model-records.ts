import { sql } from "kysely";
import { z } from "zod";
import { ServiceError } from "../contract/errors.ts";
import type { ModelPage, ModelQuery } from "../contract/model-routes.ts";
import { uploadSource } from "../contract/model-source.ts";
import { liveStatuses } from "../contract/status.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
import { buildPage, parseCursor } from "./build-page.ts";
import type { Reading } from "./delete-jobs.ts";
import { listManifestsWith } from "./manifest-records.ts";
import { selectProjectBlobs } from "./project-blob-records.ts";
import { releaseBlobs } from "./release-blobs.ts";
import type { Schema } from "./schema.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

const uploadCursor = z.string().regex(/^\d{4}-[0-9:.TZ-]{10,30} [0-9a-f]{64} \S{0,200}$/);

/** Uploaded models of projects, as lists and deletions see them. */
export function modelRecords(store: Store) {
  return {
    list: (project: string, query: ModelQuery) => listUploads(store, project, query),

    /**
     * Forgets an upload; false where there is none.
     * @throws ServiceError model_in_use
     */
    delete: (project: string, sha256: string, audit?: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const isDeleted = await deleteUpload(writing, project, sha256);
        if (isDeleted) await addAuditEntry(writing, audit, { subject: sha256 });
        return isDeleted;
      }),
  };
}

async function listUploads(
  store: Store,
  project: string,
  { cursor, limit }: ModelQuery,
): Promise<ModelPage> {
  let uploads = selectUploads(store, project);
  if (cursor !== undefined) {
    const [time, sha256, repository] = parseCursor(cursor, uploadCursor).split(" ");
    uploads = uploads.where(
      sql<boolean>`(created_at, sha256, repository_id) < (${time}, ${sha256}, ${repository})`,
    );
  }
  const rows = await uploads.limit(limit + 1).execute();
  const { entries, nextCursor } = buildPage(rows.map(identifyUpload), limit);
  return { models: entries.map(({ model }) => model), nextCursor };
}

/** Newest first. */
function selectUploads({ db }: Store, project: string) {
  return db
    .selectFrom("project_blobs")
    .select(["created_at", "sha256", "repository_id", "bytes"])
    .where("project", "=", project)
    .orderBy("created_at", "desc")
    .orderBy("sha256", "desc")
    .orderBy("repository_id", "desc");
}

type UploadRow = Omit<Schema["project_blobs"], "project">;

/** An upload with what a cursor names it by. */
function identifyUpload({ created_at: createdAt, sha256, repository_id, bytes }: UploadRow) {
  const model = { source: uploadSource(sha256), sha256, bytes, createdAt };
  return { id: `${createdAt} ${sha256} ${repository_id}`, model };
}

async function deleteUpload(
  writing: WriteTransaction,
  project: string,
  sha256: string,
): Promise<boolean> {
  const uploads = selectProjectBlobs(writing.trx, { project, repository: undefined });
  const upload = await uploads.where("sha256", "=", sha256).limit(1).executeTakeFirst();
  if (upload === undefined) return false;
  const user = await findJobThatUses(writing, project, sha256);
  if (user !== undefined) {
    throw new ServiceError("model_in_use", `Model "${sha256}" is needed by job "${user}"`);
  }
  await forgetUpload(writing, { project, sha256 });
  // Models that have lost a file are none any more.
  for (const manifest of await listManifestsWith(writing.trx, { project, sha256 })) {
    await forgetUpload(writing, { project, sha256: manifest });
  }
  return true;
}

interface ProjectUpload {
  readonly project: string;
  readonly sha256: string;
}

/** Forgets an upload of a project, whoever of it uploaded it, and what it names as a manifest. */
export async function forgetUpload(
  writing: WriteTransaction,
  { project, sha256 }: ProjectUpload,
): Promise<void> {
  const { trx } = writing;
  await trx
    .deleteFrom("manifest_files")
    .where("project", "=", project)
    .where("manifest", "=", sha256)
    .execute();
  await trx
    .deleteFrom("project_blobs")
    .where("project", "=", project)
    .where("sha256", "=", sha256)
    .execute();
  await releaseBlobs(writing, [sha256]);
}

/** A job of the project that has not ended and names the upload, or a manifest that does. */
export async function findJobThatUses(
  { trx }: Reading,
  project: string,
  sha256: string,
): Promise<string | undefined> {
  const manifests = await listManifestsWith(trx, { project, sha256 });
  const sources = [sha256, ...manifests].map(uploadSource);
  for (const column of ["model_source", "evaluation_data"] as const) {
    const row = await trx
      .selectFrom("jobs")
      .select("id")
      .where("project", "=", project)
      .where(column, "in", sources)
      .where("status", "in", liveStatuses)
      .limit(1)
      .executeTakeFirst();
    if (row) return row.id;
  }
  return undefined;
}
