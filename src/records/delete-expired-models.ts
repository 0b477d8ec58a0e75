import { sql } from "kysely";
import { encodeIdTime } from "../contract/id.ts";
import { uploadSource } from "../contract/models/model-source.ts";
import { selectManifestsWith } from "./manifest-records.ts";
import { findJobThatUses, forgetUploads } from "./model-records.ts";
import type { Expiry } from "./retention.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/**
 * Forgets uploads from before their project's time that no job has named since then. What a
 * manifest names goes after the manifest.
 */
export async function deleteExpiredModels(store: Store, expiry: Expiry): Promise<void> {
  const uploads = await store.db
    .selectFrom("project_blobs")
    .select((eb) => ["project", "sha256", eb.fn.max("created_at").as("sent_at")])
    .groupBy(["project", "sha256"])
    .having((eb) => eb.fn.max("created_at"), "<", expiry.latest.toISOString())
    .execute();
  for (const { project, sha256, sent_at } of uploads) {
    const before = expiry.findBefore(project);
    if (before === undefined || sent_at >= before.toISOString()) continue;
    await runWriteTransaction(store, async (writing) => {
      if (await isModelNeeded(writing, { project, sha256, before })) return;
      await forgetUploads(writing, project, [sha256]);
    });
  }
}

interface DatedUpload {
  readonly project: string;
  readonly sha256: string;
  readonly before: Date;
}

async function isModelNeeded(
  { trx }: WriteTransaction,
  { project, sha256, before }: DatedUpload,
): Promise<boolean> {
  const naming = selectManifestsWith(trx, { project, sha256 }).select("manifest").limit(1);
  if ((await naming.executeTakeFirst()) !== undefined) return true;
  const source = uploadSource(sha256);
  if ((await findJobThatUses(trx, project, [source])) !== undefined) return true;
  const first = `job-${encodeIdTime(before)}`;
  const jobs = trx.selectFrom("jobs").select("id").where("project", "=", project);
  const recent = jobs.where("id", ">=", first).limit(1);
  const reports = trx.selectFrom("github_reports").select("id").where("is_open", "=", sql.lit(1));
  const uploads = trx.selectFrom("project_blobs").select("sha256 as id").limit(1);
  const users = [
    uploads
      .where("project", "=", project)
      .where("sha256", "=", sha256)
      .where("created_at", ">=", before.toISOString()),
    recent.where("model_source", "=", source),
    recent.where("evaluation_data", "=", source),
    reports.where("request", "like", `%${source}%`).limit(1),
  ];
  const found = await Promise.all(users.map((query) => query.executeTakeFirst()));
  return found.some((row) => row !== undefined);
}
