import { newId } from "../../contract/id.ts";
import { administratorId } from "../../contract/people/person.ts";
import { defaultProject } from "../../contract/project.ts";
import { findRole } from "../../contract/people/role.ts";
import { type Session, session } from "../../contract/people/session.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
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

/** In the audit. */
const signInAction = "signIn";

interface FoundSession extends PersonAccess {
  readonly session: Session;
}

/** Links by which people sign in, and people who are signed in. */
export function sessionRecords(store: Store) {
  return {
    /** Stores a link for the installation's administrator. */
    createLink: (link: NewSignInLink, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => insertLink(writing, { ...link, isFirst: 0 }, audit)),

    /**
     * Stores a link that may be there already, or deletes it where somebody who has a role has ever
     * signed in.
     */
    offerFirstLink: (link: NewSignInLink, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => insertFirstLink(writing, link, audit)),

    ...waysToSignIn(store),

    /** Also finds sessions that have expired. */
    findByHash: (hash: string) => findSession(store, hash),

    list: (personId: string) => listSessions(store, personId),

    /** Whether anybody is signed in. */
    hasAny: () => hasSession(store),

    /** Lets requests of the session act in another project. */
    switchProject: (id: string, project: string, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => updateProject(writing, { id, project }, audit)),

    end: (id: string, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => endSession(writing, id, audit)),

    /** Ends all sessions of a person. */
    endAll: (personId: string, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => endSessions(writing, personId, audit)),

    /** Deletes links and sessions that have expired. */
    purge: () => purgeSessions(store),

    /** Records the session's use, some time later. */
    touch: createLastUseWriter(store, "sessions"),
  };
}

function waysToSignIn(store: Store) {
  return {
    /** Signs a person in by a link, which is spent; undefined where no such link is valid. */
    begin: async (linkHash: string, newSession: NewSession) => {
      // Strangers' guesses take no turn of those that write.
      if (!(await hasLink(store, linkHash))) return undefined;
      return runWriteTransaction(store, (writing) => spendLink(writing, linkHash, newSession));
    },

    /** Signs a person in whom an issuer has named. */
    beginIssued: (person: IssuedPerson, newSession: NewSession) =>
      runWriteTransaction(store, async (writing) =>
        insertSession(writing, await savePerson(writing, person), newSession),
      ),
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
  await addAuditEntry(writing, audit, { subject: administratorId });
}

async function insertFirstLink(
  writing: WriteTransaction,
  link: NewSignInLink,
  audit: AuditedChange,
): Promise<void> {
  const { trx } = writing;
  await trx.deleteFrom("sign_in_links").where("hash", "=", link.hash).execute();
  const people = trx.selectFrom("people").select("id").where("had_role", "=", 1).limit(1);
  if ((await people.executeTakeFirst()) !== undefined) return;
  await insertLink(writing, { ...link, isFirst: 1 }, audit);
}

/** The first sign-in's secret would make anybody who reads it an administrator. */
async function endFirstSignIn({ trx }: WriteTransaction, personId: string): Promise<void> {
  await trx.updateTable("people").set({ had_role: 1 }).where("id", "=", personId).execute();
  await trx.deleteFrom("sign_in_links").where("is_first", "=", 1).execute();
}

async function hasLink({ db, now }: Store, hash: string): Promise<boolean> {
  const link = await db
    .selectFrom("sign_in_links")
    .select("hash")
    .where("hash", "=", hash)
    .where("expires_at", ">", now().toISOString())
    .executeTakeFirst();
  return link !== undefined;
}

async function spendLink(
  writing: WriteTransaction,
  linkHash: string,
  newSession: NewSession,
): Promise<Session | undefined> {
  const link = await writing.trx
    .deleteFrom("sign_in_links")
    .where("hash", "=", linkHash)
    .where("expires_at", ">", writing.now.toISOString())
    .returning("person_id")
    .executeTakeFirst();
  if (link === undefined) return undefined;
  await makeAdministrator(writing);
  return insertSession(writing, link.person_id, newSession);
}

/** Begins a session in one of the person's projects, first of all in `default`. */
async function insertSession(
  writing: WriteTransaction,
  personId: string,
  { hash, browser, method, expiresAt }: NewSession,
): Promise<Session> {
  const { trx, now } = writing;
  const access = await findPersonAccess({ db: trx, now, id: personId });
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
  if (access.memberships.length > 0) await endFirstSignIn(writing, personId);
  const { project } = row;
  const change = { project, action: signInAction, tokenId: null, tokenName: access.person.name };
  await addAuditEntry(writing, { ...change, personId }, { subject: row.id });
  return parseSessionRow(row);
}

function firstProject({ memberships }: PersonAccess): string {
  if (findRole(memberships, defaultProject) !== undefined) return defaultProject;
  return memberships.map(({ project }) => project).toSorted()[0] ?? defaultProject;
}

async function findSession({ db, now }: Store, hash: string): Promise<FoundSession | undefined> {
  const row = await db
    .selectFrom("sessions")
    .selectAll()
    .where("hash", "=", hash)
    .executeTakeFirst();
  const access = row && (await findPersonAccess({ db, now: now(), id: row.person_id }));
  return access && { session: parseSessionRow(row), ...access };
}

async function listSessions({ db, now }: Store, personId: string): Promise<Session[]> {
  const rows = await db
    .selectFrom("sessions")
    .selectAll()
    .where("person_id", "=", personId)
    .where("expires_at", ">", now().toISOString())
    .orderBy("id", "desc")
    .execute();
  return rows.map(parseSessionRow);
}

async function hasSession({ db, now }: Store): Promise<boolean> {
  const row = await db
    .selectFrom("sessions")
    .select("id")
    .where("expires_at", ">", now().toISOString())
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

async function updateProject(
  writing: WriteTransaction,
  { id, project }: Pick<Session, "id" | "project">,
  audit: AuditedChange,
): Promise<void> {
  await writing.trx.updateTable("sessions").set({ project }).where("id", "=", id).execute();
  await addAuditEntry(writing, audit, { subject: id, project });
}

async function endSession(
  writing: WriteTransaction,
  id: string,
  audit: AuditedChange,
): Promise<void> {
  const { numDeletedRows } = await writing.trx
    .deleteFrom("sessions")
    .where("id", "=", id)
    .executeTakeFirst();
  if (numDeletedRows > 0n) await addAuditEntry(writing, audit, { subject: id });
}

async function endSessions(
  writing: WriteTransaction,
  personId: string,
  audit: AuditedChange,
): Promise<void> {
  const { numDeletedRows } = await writing.trx
    .deleteFrom("sessions")
    .where("person_id", "=", personId)
    .executeTakeFirst();
  if (numDeletedRows > 0n) await addAuditEntry(writing, audit, { subject: personId });
}

async function purgeSessions({ db, now }: Store): Promise<void> {
  for (const table of ["sign_in_links", "sessions"] as const) {
    await db.deleteFrom(table).where("expires_at", "<", now().toISOString()).execute();
  }
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
