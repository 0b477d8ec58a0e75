import { ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
import type { Schema } from "./schema.ts";
import { type IdempotencyRef, updateAnswer } from "./record-creation.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

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
