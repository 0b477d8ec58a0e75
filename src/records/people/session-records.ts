import { newId } from "../../contract/id.ts";
import { administratorId } from "../../contract/people/person.ts";
import { defaultProject } from "../../contract/project.ts";
import { findRole } from "../../contract/people/role.ts";
import { type Session, session } from "../../contract/people/session.ts";
import { addAuditEntry, type AuditedChange } from "./audit-records.ts";
import { createLastUseWriter } from "./token-records.ts";
import { makeAdministrator, saveAdministrator } from "./member-records.ts";
import {
  findPersonAccess,
  type IssuedPerson,
  type PersonAccess,
  savePerson,
} from "./person-access.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** A link to store, with its hash instead of its secret. */
interface NewSignInLink {
  readonly hash: string;
  readonly expiresAt: string;
}

/** A session to store: the hash of its secret, and what is known of the browser. */
export interface NewSession extends Pick<Session, "browser" | "expiresAt" | "method"> {
  readonly hash: string;
}

/** Links that people sign in with, and people who are signed in. */
export function sessionRecords(store: Store) {
  const { db, now } = store;
  return {
    /** Stores a link for the installation's administrator. */
    createLink: (link: NewSignInLink, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => insertLink(writing, { ...link, isFirst: 0 }, audit)),

    /**
     * Stores a link that may be there already, or deletes it where somebody who has a role has ever
     * signed in.
     */
    offerFirstLink: (link: NewSignInLink, audit: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const { trx } = writing;
        await trx.deleteFrom("sign_in_links").where("hash", "=", link.hash).execute();
        const people = trx.selectFrom("people").select("id").where("had_role", "=", 1).limit(1);
        if ((await people.executeTakeFirst()) !== undefined) return;
        await insertLink(writing, { ...link, isFirst: 1 }, audit);
      }),

    /** Signs a person in by a link, which is spent; undefined where no such link is valid. */
    async begin(linkHash: string, newSession: NewSession): Promise<Session | undefined> {
      // Strangers' guesses take no turn of those that write.
      const link = await db
        .selectFrom("sign_in_links")
        .select("hash")
        .where("hash", "=", linkHash)
        .where("expires_at", ">", now().toISOString())
        .executeTakeFirst();
      if (link === undefined) return undefined;
      return runWriteTransaction(store, async (writing) => {
        const spent = await writing.trx
          .deleteFrom("sign_in_links")
          .where("hash", "=", linkHash)
          .where("expires_at", ">", writing.now.toISOString())
          .returning("person_id")
          .executeTakeFirst();
        if (spent === undefined) return undefined;
        await makeAdministrator(writing);
        return insertSession(writing, spent.person_id, newSession);
      });
    },

    /** Signs a person in whom an issuer has named. */
    beginIssued: (person: IssuedPerson, newSession: NewSession) =>
      runWriteTransaction(store, async (writing) =>
        insertSession(writing, await savePerson(writing, person), newSession),
      ),

    /** Also finds sessions that have expired. */
    async findByHash(hash: string) {
      const row = await db
        .selectFrom("sessions")
        .selectAll()
        .where("hash", "=", hash)
        .executeTakeFirst();
      const access = row && (await findPersonAccess(db, now(), row.person_id));
      return access && { session: parseSessionRow(row), ...access };
    },

    async list(personId: string): Promise<Session[]> {
      const rows = await db
        .selectFrom("sessions")
        .selectAll()
        .where("person_id", "=", personId)
        .where("expires_at", ">", now().toISOString())
        .orderBy("id", "desc")
        .execute();
      return rows.map(parseSessionRow);
    },

    /** Whether anybody is signed in. */
    async hasAny(): Promise<boolean> {
      const row = await db
        .selectFrom("sessions")
        .select("id")
        .where("expires_at", ">", now().toISOString())
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },

    /** Lets requests of the session act in another project. */
    switchProject: (id: string, project: string, audit: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        await writing.trx.updateTable("sessions").set({ project }).where("id", "=", id).execute();
        await addAuditEntry(writing, audit, id, project);
      }),

    end: (id: string, audit: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const { numDeletedRows } = await writing.trx
          .deleteFrom("sessions")
          .where("id", "=", id)
          .executeTakeFirst();
        if (numDeletedRows > 0n) await addAuditEntry(writing, audit, id);
      }),

    endAll: (personId: string, audit: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const { numDeletedRows } = await writing.trx
          .deleteFrom("sessions")
          .where("person_id", "=", personId)
          .executeTakeFirst();
        if (numDeletedRows > 0n) await addAuditEntry(writing, audit, personId);
      }),

    /** Deletes links and sessions that have expired. */
    async purge(): Promise<void> {
      for (const table of ["sign_in_links", "sessions"] as const) {
        await db.deleteFrom(table).where("expires_at", "<", now().toISOString()).execute();
      }
    },

    /** Records the session's use, some time later. */
    touch: createLastUseWriter(store, "sessions"),
  };
}

async function insertLink(
  writing: WriteTransaction,
  { hash, expiresAt, isFirst }: NewSignInLink & { readonly isFirst: 0 | 1 },
  audit: AuditedChange,
): Promise<void> {
  await saveAdministrator(writing);
  await writing.trx
    .insertInto("sign_in_links")
    .values({ hash, person_id: administratorId, expires_at: expiresAt, is_first: isFirst })
    .execute();
  await addAuditEntry(writing, audit, administratorId);
}

/** Begins a session in one of the person's projects, first of all in `default`. */
async function insertSession(
  writing: WriteTransaction,
  personId: string,
  { hash, browser, method, expiresAt }: NewSession,
): Promise<Session> {
  const { trx, now } = writing;
  const access = await findPersonAccess(trx, now, personId);
  if (access === undefined) throw new Error(`There is no person "${personId}"`);
  const row: Schema["sessions"] = {
    id: newId("session", now),
    hash,
    person_id: personId,
    project: firstProject(access),
    method,
    browser,
    created_at: now.toISOString(),
    expires_at: expiresAt,
    last_used_at: null,
  };
  await trx.insertInto("sessions").values(row).execute();
  if (access.memberships.length > 0) {
    // The first sign-in's secret would make anybody who reads it an administrator.
    await trx.updateTable("people").set({ had_role: 1 }).where("id", "=", personId).execute();
    await trx.deleteFrom("sign_in_links").where("is_first", "=", 1).execute();
  }
  const { project } = row;
  const change = { project, action: "signIn", tokenId: null, tokenName: access.person.name };
  await addAuditEntry(writing, { ...change, personId }, row.id);
  return parseSessionRow(row);
}

function firstProject({ memberships }: PersonAccess): string {
  if (findRole(memberships, defaultProject) !== undefined) return defaultProject;
  return memberships.map(({ project }) => project).toSorted()[0] ?? defaultProject;
}

function parseSessionRow(row: Schema["sessions"]): Session {
  return session.parse({
    id: row.id,
    project: row.project,
    personId: row.person_id,
    method: row.method,
    browser: row.browser,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
  });
}
