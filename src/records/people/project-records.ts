import type { Project } from "../../contract/project.ts";
import { addAuditEntry, type AuditedChange } from "./audit-records.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store } from "../database/store.ts";

/** The tenants of the service. */
export function projectRecords(store: Store) {
  return {
    /** Creates the project, unless it is there. */
    ensure: (name: string, audit?: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const { trx, now } = writing;
        const { numInsertedOrUpdatedRows } = await trx
          .insertInto("projects")
          .values({ name, created_at: now.toISOString() })
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirstOrThrow();
        const isNew = numInsertedOrUpdatedRows === 1n;
        if (isNew) await addAuditEntry(writing, audit, name);
        const stored = trx.selectFrom("projects").selectAll().where("name", "=", name);
        return { project: parseProjectRow(await stored.executeTakeFirstOrThrow()), isNew };
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

function parseProjectRow({ name, created_at: createdAt }: Schema["projects"]): Project {
  return { name, createdAt };
}
