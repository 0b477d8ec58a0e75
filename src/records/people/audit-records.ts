import { auditEntry, type AuditPage, type AuditQuery } from "../../contract/people/audit.ts";
import { auditId } from "../../contract/id.ts";
import { buildPage, parseCursor } from "../database/rows.ts";
import type { Store } from "../database/store.ts";

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
