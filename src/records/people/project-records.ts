import type { Project } from "../../contract/project.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
import type { Schema } from "../database/schema.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "../database/store.ts";

/** The tenants of the service. */
export function projectRecords(store: Store) {
  return {
    /** Creates the project, unless it is there. */
    ensure: (name: string, audit?: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const ensured = await ensureProject(writing, name);
        if (ensured.isNew) await addAuditEntry(writing, audit, { subject: name });
        return ensured;
      }),

    async has(name: string): Promise<boolean> {
      const rows = store.db.selectFrom("projects").select("name").where("name", "=", name);
      return (await rows.executeTakeFirst()) !== undefined;
    },

    async list(): Promise<Project[]> {
      const rows = await store.db.selectFrom("projects").selectAll().orderBy("name").execute();
      return rows.map(parseProjectRow);
    },
  };
}

async function ensureProject(
  { trx, now }: WriteTransaction,
  name: string,
): Promise<{ project: Project; isNew: boolean }> {
  const row = { name, created_at: now.toISOString() };
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto("projects")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  const stored = await trx
    .selectFrom("projects")
    .selectAll()
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return { project: parseProjectRow(stored), isNew: numInsertedOrUpdatedRows === 1n };
}

function parseProjectRow({ name, created_at: createdAt }: Schema["projects"]): Project {
  return { name, createdAt };
}
