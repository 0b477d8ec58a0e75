import { ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
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

    /** Frees the keys of requests that an earlier process of the service did not answer. */
    reset: () => deleteAllUnanswered(store),

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
    .select(["body_hash", "answer"])
    .where("project", "=", ref.project)
    .where("token_id", "=", ref.tokenId)
    .where("key", "=", ref.key)
    .where("created_at", ">", oldestTime(writing.now))
    .executeTakeFirst();
  if (known === undefined) {
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

async function insertKey(
  { trx, now }: WriteTransaction,
  { project, tokenId, key }: IdempotencyRef,
  bodyHash: string,
): Promise<void> {
  const columns = { body_hash: bodyHash, answer: null, created_at: now.toISOString() };
  await trx
    .insertInto("idempotency_keys")
    .values({ project, token_id: tokenId, key, ...columns })
    .onConflict((conflict) => conflict.columns(["project", "token_id", "key"]).doUpdateSet(columns))
    .execute();
}

async function deleteUnanswered(
  { db }: Store,
  { project, tokenId, key }: IdempotencyRef,
): Promise<void> {
  await db
    .deleteFrom("idempotency_keys")
    .where("project", "=", project)
    .where("token_id", "=", tokenId)
    .where("key", "=", key)
    .where("answer", "is", null)
    .execute();
}

async function deleteAllUnanswered({ db }: Store): Promise<void> {
  await db.deleteFrom("idempotency_keys").where("answer", "is", null).execute();
}

async function purgeKeys({ db, now }: Store): Promise<void> {
  await db.deleteFrom("idempotency_keys").where("created_at", "<=", oldestTime(now())).execute();
}

function oldestTime(now: Date): string {
  return new Date(now.getTime() - limits.idempotencyHours * hourMs).toISOString();
}
