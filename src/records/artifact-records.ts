import { randomBytes } from "node:crypto";
import type { Artifact } from "../contract/artifact.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
import { parseJob } from "./parse-job.ts";
import { type Store, runWriteTransaction } from "./store.ts";

/** Who makes a link, and to what. */
interface NewLink {
  readonly audit: AuditedChange;
  readonly subject: string;
}

const linkKeyName = "artifact-links";
const keyBytes = 32;

/** Files that jobs produced, and the links to them. */
export function artifactRecords(store: Store) {
  return {
    /** Of any project. */
    async find(jobId: string, name: string): Promise<Artifact | undefined> {
      const row = await store.db
        .selectFrom("jobs")
        .select("document")
        .where("id", "=", jobId)
        .executeTakeFirst();
      return row && parseJob(row.document).artifacts.find((artifact) => artifact.name === name);
    },

    /** The key that signs links, the same for good. A new link is added to the audit. */
    async readLinkKey(link?: NewLink): Promise<Buffer> {
      if (link)
        await runWriteTransaction(store, (writing) => addAuditEntry(writing, link.audit, link));
      return readKey(store, linkKeyName);
    },
  };
}

async function readKey(store: Store, name: string): Promise<Buffer> {
  const keys = store.db.selectFrom("service_keys").select("value").where("name", "=", name);
  const stored = await keys.executeTakeFirst();
  if (stored) return Buffer.from(stored.value, "base64");
  const value = randomBytes(keyBytes).toString("base64");
  await store.db
    .insertInto("service_keys")
    .values({ name, value })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return Buffer.from((await keys.executeTakeFirstOrThrow()).value, "base64");
}
