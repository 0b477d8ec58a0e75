import { ServiceError } from "../../contract/errors.ts";
import { newId } from "../../contract/id.ts";
import { limits } from "../../contract/limits.ts";
import { type Passkey, passkey } from "../../contract/people/passkey.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
import { spendIdentity, type SpentIdentity } from "./identity-records.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** What an authenticator has made. */
export interface Credential {
  /** Base64url. */
  readonly id: string;
  readonly publicKey: Uint8Array<ArrayBuffer>;
  /** How often it was used, where the authenticator counts; else 0. */
  readonly counter: number;
}

interface NewPasskeyRecord {
  readonly personId: string;
  readonly name: string;
  readonly credential: Credential;
  readonly challenge: SpentIdentity;
}

interface OwnPasskey {
  readonly personId: string;
  readonly id: string;
}

/** Passkeys of people. */
export function passkeyRecords(store: Store) {
  return {
    /** @throws ServiceError passkey_refused where challenge or credential were used before */
    create: (newPasskey: NewPasskeyRecord, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => insertPasskey(writing, newPasskey, audit)),

    list: (personId: string) => listPasskeys(store, personId),

    /** Ids of a person's credentials, which authenticators know. */
    listCredentialIds: (personId: string) => listCredentialIds(store.db, personId),

    /** Undefined where there is none of the id that an authenticator has given it. */
    findCredential: (credentialId: string) => findCredential(store, credentialId),

    /** Undefined where the person has no such passkey. */
    rename: (renamed: OwnPasskey & Pick<Passkey, "name">, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => updateName(writing, renamed, audit)),

    /** False where the person has no such passkey. */
    delete: (own: OwnPasskey, audit: AuditedChange) =>
      runWriteTransaction(store, (writing) => removePasskey(writing, own, audit)),
  };
}

async function insertPasskey(
  writing: WriteTransaction,
  { personId, name, credential, challenge }: NewPasskeyRecord,
  audit: AuditedChange,
): Promise<Passkey> {
  const { trx, now } = writing;
  const { id: credentialId, publicKey, counter } = credential;
  if (!(await spendIdentity(writing, challenge)))
    throw passkeyRefusedError("The challenge was used");
  await requireFurtherPasskey(writing, personId);
  const row: Schema["passkeys"] = {
    id: newId("passkey", now),
    person_id: personId,
    name,
    credential_id: credentialId,
    public_key: Buffer.from(publicKey).toString("base64"),
    counter,
    created_at: now.toISOString(),
    last_used_at: null,
  };
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto("passkeys")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows !== 1n)
    throw passkeyRefusedError("The passkey is registered already");
  await addAuditEntry(writing, audit, { subject: row.id });
  return parsePasskeyRow(row);
}

async function requireFurtherPasskey({ trx }: WriteTransaction, personId: string): Promise<void> {
  const others = await listCredentialIds(trx, personId);
  if (others.length < limits.passkeys) return;
  throw passkeyRefusedError(`You have ${limits.passkeys} passkeys, as many as you may`);
}

function passkeyRefusedError(message: string): ServiceError {
  return new ServiceError("passkey_refused", message);
}

async function listPasskeys({ db }: Store, personId: string): Promise<Passkey[]> {
  const rows = await db
    .selectFrom("passkeys")
    .selectAll()
    .where("person_id", "=", personId)
    .orderBy("id", "desc")
    .execute();
  return rows.map(parsePasskeyRow);
}

async function listCredentialIds(db: Store["db"], personId: string): Promise<string[]> {
  const rows = await db
    .selectFrom("passkeys")
    .select("credential_id")
    .where("person_id", "=", personId)
    .execute();
  return rows.map(({ credential_id: id }) => id);
}

async function findCredential(
  { db }: Store,
  credentialId: string,
): Promise<Credential | undefined> {
  const row = await db
    .selectFrom("passkeys")
    .selectAll()
    .where("credential_id", "=", credentialId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const publicKey = new Uint8Array(Buffer.from(row.public_key, "base64"));
  return { id: credentialId, publicKey, counter: row.counter };
}

export interface UsedPasskey extends Pick<Credential, "id" | "counter"> {
  readonly challenge: SpentIdentity;
}

/**
 * Records that a passkey was used.
 * @returns whose it is; undefined where the challenge was used before, the passkey is deleted, or
 * its counter has gone back, as that of a copy does
 */
export async function usePasskey(
  writing: WriteTransaction,
  { id, counter, challenge }: UsedPasskey,
): Promise<string | undefined> {
  if (!(await spendIdentity(writing, challenge))) return undefined;
  const used = await writing.trx
    .updateTable("passkeys")
    .set({ counter, last_used_at: writing.now.toISOString() })
    .where("credential_id", "=", id)
    .where((eb) =>
      eb.or([eb("counter", "<", counter), eb.and([eb("counter", "=", 0), eb.lit(counter === 0)])]),
    )
    .returning("person_id")
    .executeTakeFirst();
  return used?.person_id;
}

async function updateName(
  writing: WriteTransaction,
  { personId, id, name }: OwnPasskey & Pick<Passkey, "name">,
  audit: AuditedChange,
): Promise<Passkey | undefined> {
  const row = await writing.trx
    .updateTable("passkeys")
    .set({ name })
    .where("id", "=", id)
    .where("person_id", "=", personId)
    .returningAll()
    .executeTakeFirst();
  if (row !== undefined) await addAuditEntry(writing, audit, { subject: id });
  return row && parsePasskeyRow(row);
}

async function removePasskey(
  writing: WriteTransaction,
  { personId, id }: OwnPasskey,
  audit: AuditedChange,
): Promise<boolean> {
  const { numDeletedRows } = await writing.trx
    .deleteFrom("passkeys")
    .where("id", "=", id)
    .where("person_id", "=", personId)
    .executeTakeFirst();
  if (numDeletedRows > 0n) await addAuditEntry(writing, audit, { subject: id });
  return numDeletedRows > 0n;
}

function parsePasskeyRow(row: Schema["passkeys"]): Passkey {
  return passkey.parse({
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  });
}
