import { randomBytes } from "node:crypto";
import type { Artifact } from "../../contract/jobs/artifact.ts";
import { addAuditEntry, type AuditedChange } from "../people/audit-records.ts";
import { parseJob } from "./find-record.ts";
import { type Store, runWriteTransaction } from "../database/store.ts";

const keyBytes = 32;

/** Files that jobs produced, and the links to them. */
export function artifactRecords(store: Store) {
  const { db } = store;
  /** Of a job of any project; none where there is no such job. */
  const list = async (jobId: string): Promise<readonly Artifact[]> => {
    const row = await db
      .selectFrom("jobs")
      .select("document")
      .where("id", "=", jobId)
      .executeTakeFirst();
    return row === undefined ? [] : parseJob(row.document).artifacts;
  };
  return {
    list,

    async find(jobId: string, name: string): Promise<Artifact | undefined> {
      return (await list(jobId)).find((artifact) => artifact.name === name);
    },

    /** The key that signs links to a job's files; undefined where none is valid. */
    async findLinkKey(jobId: string): Promise<Buffer | undefined> {
      const key = await db
        .selectFrom("service_keys")
        .select("value")
        .where("name", "=", linkKeyName(jobId))
        .executeTakeFirst();
      return key && Buffer.from(key.value, "base64");
    },

    /** The key for a new link to a job's file, which is added to the audit. */
    makeLinkKey: (jobId: string, name: string, audit: AuditedChange): Promise<Buffer> =>
      runWriteTransaction(store, async (writing) => {
        await addAuditEntry(writing, audit, `${jobId}/${name}`);
        const made = { name: linkKeyName(jobId), value: randomBytes(keyBytes).toString("base64") };
        const { value } = await writing.trx
          .insertInto("service_keys")
          .values(made)
          // An update of nothing gives back the key that is there.
          .onConflict((conflict) => conflict.column("name").doUpdateSet({ name: made.name }))
          .returning("value")
          .executeTakeFirstOrThrow();
        return Buffer.from(value, "base64");
      }),

    /** Ends all links to a job's files. */
    deleteLinkKey: (jobId: string, audit: AuditedChange): Promise<void> =>
      runWriteTransaction(store, async (writing) => {
        await addAuditEntry(writing, audit, jobId);
        const key = writing.trx.deleteFrom("service_keys").where("name", "=", linkKeyName(jobId));
        await key.execute();
      }),
  };
}

/** Of the service's key that signs links to a job's files. */
export function linkKeyName(jobId: string): string {
  return `artifact-links/${jobId}`;
}
