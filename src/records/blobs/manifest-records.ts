import { sql } from "kysely";
import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import type { Manifest, ModelFile, StoredUpload } from "../../contract/models/manifest.ts";
import type { Owner } from "../../contract/people/principal.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { addAuditEntry, type AuditedChange } from "../people/audit-records.ts";
import { insertProjectBlob, selectProjectBlobs } from "./project-blob-records.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

const rowsPerQuery = 200;

/** Uploads that name the other uploads that a model consists of. */
export function manifestRecords(store: Store) {
  return {
    /**
     * The files of a manifest with their sizes.
     * @throws ServiceError model_not_found for files that the owner has not uploaded;
     * too_many_manifests
     */
    findFiles: (owner: Owner, manifest: Manifest, sha256: string) =>
      findFiles(store.db, owner, manifest, sha256),

    /**
     * Records a manifest that is stored.
     * @throws ServiceError as `findFiles()` does
     */
    add: (
      owner: Owner,
      manifest: Manifest,
      recorded: Omit<StoredUpload, "files"> & { readonly audit: AuditedChange },
    ) =>
      runWriteTransaction(store, async (writing) => {
        const { sha256, audit } = recorded;
        const files = await findFiles(writing.trx, owner, manifest, sha256);
        await insertProjectBlob(writing, owner, recorded);
        await insertFiles(writing, { project: owner.project, manifest: sha256 }, files);
        await addAuditEntry(writing, audit, sha256);
      }),

    /**
     * Records an upload that the records no longer know, with all that it names. False
     * where the project has no room for another manifest.
     */
    restore: (project: string, upload: StoredUpload) =>
      runWriteTransaction(store, async (writing) => {
        const owner = { project, origin: null };
        const { sha256, files } = upload;
        const { trx } = writing;
        const others = files.length === 0 ? 0 : await countOtherManifests(trx, project, sha256);
        if (others >= limits.manifests) return false;
        for (const file of [upload, ...files]) await insertProjectBlob(writing, owner, file);
        await insertFiles(writing, { project, manifest: sha256 }, files);
        return true;
      }),
  };
}

async function findFiles(
  db: Store["db"],
  owner: Owner,
  manifest: Manifest,
  sha256: string,
): Promise<ModelFile[]> {
  const files = await findUploads(db, owner, manifest);
  const count = await countOtherManifests(db, owner.project, sha256);
  if (count < limits.manifests) return files;
  const message = `The project has ${count} manifests; at most ${limits.manifests} are allowed`;
  throw new ServiceError("too_many_manifests", `${message}; delete some`);
}

async function findUploads(
  db: Store["db"],
  { project, origin }: Owner,
  { files }: Manifest,
): Promise<ModelFile[]> {
  const bytes = new Map<string, number>();
  for (let start = 0; start < files.length; start += rowsPerQuery) {
    const hashes = files.slice(start, start + rowsPerQuery).map(({ sha256 }) => sha256);
    const uploads = selectProjectBlobs(db, project, origin?.repository);
    const rows = await uploads.where("sha256", "in", hashes).execute();
    for (const row of rows) bytes.set(row.sha256, row.bytes);
  }
  const missing = files.flatMap(({ sha256 }, i) =>
    bytes.has(sha256) ? [] : [{ pointer: `/files/${i}/sha256`, message: "Was not uploaded" }],
  );
  if (missing.length > 0) {
    const message = `Not uploaded: ${missing.length} of the manifest's ${formatCount(files.length, "file")}`;
    throw new ServiceError("model_not_found", message, { fields: missing });
  }
  return files.map((file) => ({ ...file, bytes: bytes.get(file.sha256) ?? 0 }));
}

async function countOtherManifests(
  db: Store["db"],
  project: string,
  manifest: string,
): Promise<number> {
  const { count } = await db
    .selectFrom("manifest_files")
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("project", "=", project)
    .where("manifest", "!=", manifest)
    // As the index says it.
    .where("position", "=", sql.lit(0))
    .executeTakeFirstOrThrow();
  return Number(count);
}

async function insertFiles(
  { trx }: WriteTransaction,
  name: { readonly project: string; readonly manifest: string },
  files: readonly ModelFile[],
): Promise<void> {
  const rows = files.map((file, position) => ({ ...name, position, ...file }));
  for (let start = 0; start < rows.length; start += rowsPerQuery) {
    await trx
      .insertInto("manifest_files")
      .values(rows.slice(start, start + rowsPerQuery))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/**
 * What a manifest names, the ONNX file first; undefined for other uploads. The text of a manifest
 * is not one for a workflow that has not uploaded the files: it could name others' by hash.
 */
export async function findManifestFiles(
  trx: Store["db"],
  { project, origin }: Owner,
  manifest: string,
): Promise<ModelFile[] | undefined> {
  const own = selectProjectBlobs(trx, project, origin?.repository).select("sha256");
  const rows = await trx
    .selectFrom("manifest_files as file")
    .select((eb) => {
      const uploads = own.where("project_blobs.sha256", "=", sql.ref<string>("file.sha256"));
      const isOwn = eb.case().when(eb.exists(uploads)).then(1).else(0).end();
      return ["file.path", "file.sha256", "file.bytes", isOwn.as("isOwn")];
    })
    .where("file.project", "=", project)
    .where("file.manifest", "=", manifest)
    .orderBy("file.position")
    .execute();
  if (rows.length === 0 || rows.some(({ isOwn }) => isOwn === 0)) return undefined;
  return rows.map(({ path, sha256, bytes }) => ({ path, sha256, bytes }));
}

/** Manifests of the project that name an upload. */
export function selectManifestsWith(db: Store["db"], project: string, sha256: string) {
  return db
    .selectFrom("manifest_files")
    .distinct()
    .where("project", "=", project)
    .where("sha256", "=", sha256);
}
