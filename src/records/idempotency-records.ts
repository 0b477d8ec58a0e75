import { ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
import type { Schema } from "./schema.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/** Where an Idempotency-Key counts: for one token of one project. */
export interface IdempotencyRef {
  readonly project: string;
  readonly tokenId: string;
  readonly key: string;
}

/** The answer to repetitions of a creating request, stored in the transaction that creates. */
export interface IdempotentAnswer<T> {
  readonly ref: IdempotencyRef;
  readonly buildAnswer: (created: T) => string;
}

/** The request that creates something, as far as it is recorded in the same transaction. */
export interface CreatingRequest<T> {
  readonly answered?: IdempotentAnswer<T> | undefined;
  readonly audit?: AuditedChange | undefined;
}

const hourMs = 3_600_000;

/** Requests with an Idempotency-Key. */
export function idempotencyRecords(store: Store) {
  return {
    /**
     * The stored answer; undefined for the first request with its key, which the caller answers.
     */
    begin: (ref: IdempotencyRef, bodyHash: string) =>
      runWriteTransaction(store, (writing) => beginRequest(writing, ref, bodyHash)),

    finish: (ref: IdempotencyRef, answer: string) =>
      runWriteTransaction(store, (writing) => updateAnswer(writing, ref, answer)),

    /** Frees the key of a request that was refused. */
    abandon: (ref: IdempotencyRef) => deleteUnanswered(store, ref),

    /** Deletes keys after their lifetime. */
    purge: () => purgeKeys(store),
  };
}

/** Adds what was created to the audit, and stores the answer where repetitions get it too. */
export async function recordCreation<T extends { readonly id: string }>(
  writing: WriteTransaction,
  created: T,
  { answered, audit }: CreatingRequest<T>,
): Promise<void> {
  await addAuditEntry(writing, audit, { subject: created.id });
  if (answered === undefined) return;
  await updateAnswer(writing, answered.ref, answered.buildAnswer(created));
}

async function beginRequest(
  writing: WriteTransaction,
  ref: IdempotencyRef,
  bodyHash: string,
): Promise<string | undefined> {
  const known = await writing.trx
    .selectFrom("idempotency_keys")
    .select(["body_hash", "answer", "replica"])
    .where("project", "=", ref.project)
    .where("token_id", "=", ref.tokenId)
    .where("key", "=", ref.key)
    .where("created_at", ">", oldestTime(writing.now))
    .executeTakeFirst();
  if (known === undefined || (await isAbandoned(writing, known))) {
    await insertKey(writing, ref, bodyHash);
    return undefined;
  }
  if (known.body_hash !== bodyHash) {
    const message = `Idempotency-Key "${ref.key}" was used with another request`;
    throw new ServiceError("idempotency_key_reused", message);
  }
  if (known.answer !== null) return known.answer;
  throw new ServiceError(
    "idempotency_in_progress",
    `The first request with Idempotency-Key "${ref.key}" is still being answered`,
    { headers: { "retry-after": "1" } },
  );
}

/** Whether the process is gone that was to answer. */
async function isAbandoned(
  { replica }: WriteTransaction,
  known: Pick<Schema["idempotency_keys"], "answer" | "replica">,
): Promise<boolean> {
  if (known.answer !== null) return false;
  return known.replica === null || !(await replica.listRunning()).has(known.replica);
}

async function insertKey(
  { trx, now, replica }: WriteTransaction,
  { project, tokenId, key }: IdempotencyRef,
  bodyHash: string,
): Promise<void> {
  const created_at = now.toISOString();
  const row = { body_hash: bodyHash, answer: null, created_at, replica: replica.id };
  await trx
    .insertInto("idempotency_keys")
    .values({ project, token_id: tokenId, key, ...row })
    .onConflict((conflict) => conflict.columns(["project", "token_id", "key"]).doUpdateSet(row))
    .execute();
}

/** @throws ServiceError unavailable where another replica has taken the request for abandoned */
async function updateAnswer(
  { trx, replica }: WriteTransaction,
  { project, tokenId, key }: IdempotencyRef,
  answer: string,
): Promise<void> {
  const { numUpdatedRows } = await trx
    .updateTable("idempotency_keys")
    .set({ answer })
    .where("project", "=", project)
    .where("token_id", "=", tokenId)
    .where("key", "=", key)
    .where("replica", "=", replica.id)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows > 0n) return;
  const message = `The request with Idempotency-Key "${key}" is answered by another replica`;
  throw new ServiceError("unavailable", message, { headers: { "retry-after": "1" } });
}

async function deleteUnanswered(
  { db, replica }: Store,
  { project, tokenId, key }: IdempotencyRef,
): Promise<void> {
  await db
    .deleteFrom("idempotency_keys")
    .where("project", "=", project)
    .where("token_id", "=", tokenId)
    .where("key", "=", key)
    .where("answer", "is", null)
    .where("replica", "=", replica.id)
    .execute();
}

async function purgeKeys({ db, now }: Store): Promise<void> {
  await db.deleteFrom("idempotency_keys").where("created_at", "<=", oldestTime(now())).execute();
}

function oldestTime(now: Date): string {
  return new Date(now.getTime() - limits.idempotencyHours * hourMs).toISOString();
}
