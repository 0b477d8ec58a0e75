import type { Artifact } from "../../contract/jobs/artifact.ts";
import { addAuditEntry, type AuditedChange } from "../people/add-audit-entry.ts";
import { parseJob } from "./find-record.ts";
import { readServiceKey } from "../people/service-keys.ts";
import { type Store, runWriteTransaction } from "../database/store.ts";

const linkKeyName = "artifact-links";

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
    async readLinkKey(link?: { readonly audit: AuditedChange; readonly subject: string }) {
      if (link) {
        await runWriteTransaction(store, (writing) =>
          addAuditEntry(writing, link.audit, link.subject),
        );
      }
      return readServiceKey(store, linkKeyName);
    },
  };
}
