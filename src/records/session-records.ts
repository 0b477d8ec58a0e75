import { newId } from "../contract/id.ts";
import { type Session, session } from "../contract/session.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
import { createLastUseWriter } from "./create-last-use-writer.ts";
import type { Schema } from "./schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "./store.ts";

/** A link to store: whom it signs in, and its hash instead of its secret. */
interface NewSignInLink extends Pick<Session, "project" | "user" | "scopes" | "expiresAt"> {
  readonly hash: string;
}

/** A session to store: the hash of its secret, and what is known of the browser. */
interface NewSession extends Pick<Session, "browser" | "expiresAt"> {
  readonly hash: string;
}

/** In the audit. */
const signInAction = "signIn";

type SessionOwner = Pick<Session, "project" | "user">;

/** Links by which people sign in, and people who are signed in. */
export function sessionRecords(store: Store) {
  return {
    createLink: (link: NewSignInLink, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => insertLink(writing, link, audit)),

    /** Stores a link that may be there already, unless somebody has ever signed in. */
    offerFirstLink: (link: NewSignInLink, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => insertFirstLink(writing, link, audit)),

    /** Signs a person in by a link, which is spent; undefined where no such link is valid. */
    begin: async (linkHash: string, newSession: NewSession) => {
      // Strangers' guesses take no turn of those that write.
      if (!(await hasLink(store, linkHash))) return undefined;
      return runWriteTransaction(store, (writing) => insertSession(writing, linkHash, newSession));
    },

    /** Also finds sessions that have expired. */
    findByHash: (hash: string) => findSession(store, hash),

    list: (owner: SessionOwner) => listSessions(store, owner),

    /** Whether anybody is signed in. */
    hasAny: () => hasSession(store),

    end: (id: string, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => endSession(writing, id, audit)),

    /** Ends all sessions of a person. */
    endAll: (owner: SessionOwner, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => endSessions(writing, owner, audit)),

    /** Deletes links and sessions that have expired. */
    purge: () => purgeSessions(store),

    /** Records the session's use, some time later. */
    touch: createLastUseWriter(store, "sessions"),
  };
}

async function insertLink(
  writing: WriteTransaction,
  { hash, project, user, scopes, expiresAt }: NewSignInLink,
  audit: AuditedChange,
): Promise<void> {
  await writing.trx
    .insertInto("sign_in_links")
    .values({
      hash,
      project,
      user_name: user,
      scopes: JSON.stringify(scopes),
      expires_at: expiresAt,
    })
    .execute();
  await addAuditEntry(writing, audit, { subject: user });
}

async function insertFirstLink(
  writing: WriteTransaction,
  link: NewSignInLink,
  audit: AuditedChange,
): Promise<void> {
  const { trx } = writing;
  const signIn = trx.selectFrom("audit").select("id").where("action", "=", signInAction).limit(1);
  if ((await signIn.executeTakeFirst()) !== undefined) return;
  await trx.deleteFrom("sign_in_links").where("hash", "=", link.hash).execute();
  await insertLink(writing, link, audit);
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

async function insertSession(
  writing: WriteTransaction,
  linkHash: string,
  { hash, browser, expiresAt }: NewSession,
): Promise<Session | undefined> {
  const { trx, now } = writing;
  const link = await trx
    .deleteFrom("sign_in_links")
    .where("hash", "=", linkHash)
    .where("expires_at", ">", now.toISOString())
    .returning(["project", "user_name", "scopes"])
    .executeTakeFirst();
  if (link === undefined) return undefined;
  const row: Schema["sessions"] = {
    id: newId("session", now),
    hash,
    ...link,
    browser,
    created_at: now.toISOString(),
    expires_at: expiresAt,
    last_used_at: null,
  };
  await trx.insertInto("sessions").values(row).execute();
  const { project, user_name: tokenName } = link;
  const change = { project, action: signInAction, tokenId: null, tokenName };
  await addAuditEntry(writing, change, { subject: row.id });
  return parseSessionRow(row);
}

async function findSession({ db }: Store, hash: string): Promise<Session | undefined> {
  const row = await db
    .selectFrom("sessions")
    .selectAll()
    .where("hash", "=", hash)
    .executeTakeFirst();
  return row && parseSessionRow(row);
}

async function listSessions({ db, now }: Store, owner: SessionOwner): Promise<Session[]> {
  const rows = await db
    .selectFrom("sessions")
    .selectAll()
    .where("project", "=", owner.project)
    .where("user_name", "=", owner.user)
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
  { project, user }: SessionOwner,
  audit: AuditedChange,
): Promise<void> {
  const { numDeletedRows } = await writing.trx
    .deleteFrom("sessions")
    .where("project", "=", project)
    .where("user_name", "=", user)
    .executeTakeFirst();
  if (numDeletedRows > 0n) await addAuditEntry(writing, audit, { subject: user });
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
    user: row.user_name,
    scopes: JSON.parse(row.scopes),
    browser: row.browser,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
  });
}
