import { auditId, newId } from "../../contract/id.ts";
import type { Requester } from "../../contract/jobs/creation.ts";
import {
  type AuditEntry,
  auditEntry,
  type AuditPage,
  type AuditQuery,
} from "../../contract/people/audit.ts";
import { buildPage, parseCursor } from "../database/rows.ts";
import type { Store, WriteTransaction } from "../database/store.ts";

/** Who changed what, of projects. The database refuses to change or delete entries. */
export function auditRecords({ db }: Store) {
  return {
    async list(project: string, { cursor, limit }: AuditQuery): Promise<AuditPage> {
      let rows = db.selectFrom("audit").selectAll().where("project", "=", project);
      if (cursor !== undefined) rows = rows.where("id", "<", parseCursor(cursor, auditId));
      const page = await rows
        .orderBy("id", "desc")
        .limit(limit + 1)
        .execute();
      const { entries, nextCursor } = buildPage(page, limit);
      const parsed = entries.map(
        ({ token_id: tokenId, token_name: tokenName, person_id: personId, ...row }) =>
          auditEntry.parse({ ...row, tokenId, tokenName, personId }),
      );
      return { entries: parsed, nextCursor };
    },
  };
}

/** Who asked for a change, and how. It is written to the audit in the change's transaction. */
export interface AuditedChange extends Pick<AuditEntry, "action" | "tokenId" | "tokenName"> {
  /** Of the caller. */
  readonly project: string;
  /** Who was signed in. */
  readonly personId?: string | null;
}

/** Who asked for a change, as records name them; undefined where nobody did. */
export function findRequester(change: AuditedChange | undefined): Requester | undefined {
  return change && { tokenId: change.tokenId, name: change.tokenName };
}

/**
 * Adds a change to the audit, unless nobody asked for it. The subject is the id, name or SHA-256 of
 * what changed; its project is named where it may be another than the caller's: both have an entry
 * then.
 */
export async function addAuditEntry(
  { trx, now }: WriteTransaction,
  change: AuditedChange | undefined,
  subject: string,
  project?: string,
): Promise<void> {
  if (change === undefined) return;
  const { action, tokenId, tokenName, personId = null } = change;
  for (const each of new Set([change.project, project ?? change.project])) {
    await trx
      .insertInto("audit")
      .values({
        id: newId("audit", now),
        project: each,
        at: now.toISOString(),
        action,
        token_id: tokenId,
        token_name: tokenName,
        person_id: personId,
        subject,
      })
      .execute();
  }
}
