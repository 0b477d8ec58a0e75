import { addStoredBytes } from "../database/counters.ts";
import { type Expression, sql } from "kysely";
import { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";
import type { ModelPage, ModelQuery } from "../../contract/routes/model-routes.ts";
import { uploadSource } from "../../contract/models/model-source.ts";
import { liveStatuses } from "../../contract/jobs/status.ts";
import { addAuditEntry, type AuditedChange } from "../people/audit-records.ts";
import { buildPage, parseCursor } from "../database/rows.ts";
import { selectManifestsWith } from "./manifest-records.ts";
import { selectProjectBlobs } from "./project-blob-records.ts";
import { releaseBlobs } from "./release-blobs.ts";
import type { Schema } from "../database/schema.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "../database/store.ts";

/** Manifests that one transaction forgets with all that they name: others wait for it. */
const manifestsPerStep = 400;

const manifestSource = sql<string>`${uploadSource("")} || manifest`.as("source");

/** Sources of uploads, or the query that finds them. */
type UploadSources = readonly string[] | Expression<string>;

const uploadCursor = z.string().regex(/^\d{4}-[0-9:.TZ-]{10,30} [0-9a-f]{64} \S{0,200}$/);

/** Uploaded models of projects, as lists and deletions see them. */
export function modelRecords(store: Store) {
  const { db } = store;
  return {
    /** Newest first. */
    async list(project: string, { cursor, limit }: ModelQuery): Promise<ModelPage> {
      let uploads = db
        .selectFrom("project_blobs")
        .select(["created_at", "sha256", "repository_id", "bytes"])
        .where("project", "=", project)
        .orderBy("created_at", "desc")
        .orderBy("sha256", "desc")
        .orderBy("repository_id", "desc");
      if (cursor !== undefined) {
        const [time, sha256, repository] = parseCursor(cursor, uploadCursor).split(" ");
        uploads = uploads.where(
          sql<boolean>`(created_at, sha256, repository_id) < (${time}, ${sha256}, ${repository})`,
        );
      }
      const rows = await uploads.limit(limit + 1).execute();
      const { entries, nextCursor } = buildPage(rows.map(identifyUpload), limit);
      return { models: entries.map(({ model }) => model), nextCursor };
    },

    /**
     * Forgets an upload and the manifests that name it; false if there is none. A deletion that
     * is interrupted can be repeated.
     * @throws ServiceError model_in_use
     */
    async delete(project: string, sha256: string, audit?: AuditedChange): Promise<boolean> {
      const named = selectManifestsWith(db, project, sha256).select(manifestSource).$asScalar();
      await requireUnusedUpload(db, project, sha256, named);
      for (;;) {
        // Undefined where manifests are left that have lost a file, so are no longer manifests.
        const isDeleted = await runWriteTransaction(store, async (writing) => {
          const { trx } = writing;
          const uploads = selectProjectBlobs(trx, project);
          const upload = await uploads.where("sha256", "=", sha256).limit(1).executeTakeFirst();
          if (upload === undefined) return false;
          const naming = selectManifestsWith(trx, project, sha256).select("manifest");
          const rows = await naming.limit(manifestsPerStep).execute();
          const manifests = rows.map(({ manifest }) => manifest);
          const sources = [sha256, ...manifests].map(uploadSource);
          await requireUnusedUpload(trx, project, sha256, sources);
          await forgetUploads(writing, project, manifests);
          if (manifests.length === manifestsPerStep) return undefined;
          await forgetUploads(writing, project, [sha256]);
          await addAuditEntry(writing, audit, sha256);
          return true;
        });
        if (isDeleted !== undefined) return isDeleted;
      }
    },
  };
}

/** An upload with what a cursor names it by. */
function identifyUpload({
  created_at: createdAt,
  sha256,
  repository_id,
  bytes,
}: Omit<Schema["project_blobs"], "project">) {
  const model = { source: uploadSource(sha256), sha256, bytes, createdAt };
  return { id: `${createdAt} ${sha256} ${repository_id}`, model };
}

/** @throws ServiceError model_in_use */
async function requireUnusedUpload(
  db: Store["db"],
  project: string,
  sha256: string,
  sources: UploadSources,
): Promise<void> {
  const user = await findJobThatUses(db, project, sources);
  if (user === undefined) return;
  throw new ServiceError("model_in_use", `Model "${sha256}" is needed by job "${user}"`);
}

/** Forgets uploads of a project, by any of its members, and what they name as manifests. */
export async function forgetUploads(
  writing: WriteTransaction,
  project: string,
  hashes: readonly string[],
): Promise<void> {
  if (hashes.length === 0) return;
  const { trx } = writing;
  await trx
    .deleteFrom("manifest_files")
    .where("project", "=", project)
    .where("manifest", "in", hashes)
    .execute();
  const forgotten = await trx
    .deleteFrom("project_blobs")
    .where("project", "=", project)
    .where("sha256", "in", hashes)
    .returning("bytes")
    .execute();
  const bytes = forgotten.reduce((sum, row) => sum + Number(row.bytes), 0);
  await addStoredBytes(trx, project, -bytes);
  await releaseBlobs(writing, hashes);
}

/** Columns of jobs that can name an upload. */
export const uploadColumns = ["model_source", "calibration_data", "evaluation_data"] as const;

/** A job of the project that has not ended and names one of the uploads. */
export async function findJobThatUses(
  db: Store["db"],
  project: string,
  sources: UploadSources,
): Promise<string | undefined> {
  for (const column of uploadColumns) {
    const row = await db
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
