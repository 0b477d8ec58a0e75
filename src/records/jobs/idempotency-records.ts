import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import type { Schema } from "../database/schema.ts";
import { type IdempotencyRef, updateAnswer } from "../people/record-creation.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "../database/store.ts";

const hourMs = 3_600_000;

/** Requests with an Idempotency-Key. */
export function idempotencyRecords(store: Store) {
  // Of this process: where the disk fails, a key can stay recorded that nobody answers.
  const answering = new Set<string>();
  return {
    /**
     * The stored answer; undefined for the first request with its key, which the caller answers and
     * then ends.
     */
    begin: (ref: IdempotencyRef, bodyHash: string) =>
      beginRequest(store, { ref, bodyHash, answering }),

    end: (ref: IdempotencyRef) => answering.delete(nameKey(ref)),

    finish: (ref: IdempotencyRef, answer: string) =>
      runWriteTransaction(store, (writing) => updateAnswer(writing, ref, answer)),

    /** Frees the key of a request that was refused. */
    abandon: (ref: IdempotencyRef) => deleteUnanswered(store, ref),

    /** Deletes keys after their lifetime. */
    purge: () => purgeKeys(store),
  };
}

interface KeyedRequest {
  readonly ref: IdempotencyRef;
  readonly bodyHash: string;
  readonly answering: Set<string>;
}

async function beginRequest(store: Store, request: KeyedRequest): Promise<string | undefined> {
  const { ref, bodyHash, answering } = request;
  let isFirst = false;
  const beginning = runWriteTransaction(store, async (writing) => {
    const known = await findRequest(writing, request);
    if (known !== undefined) return readAnswer(known, request);
    await insertKey(writing, ref, bodyHash);
    isFirst = true;
    answering.add(nameKey(ref));
    return undefined;
  });
  return beginning.catch((error: unknown) => {
    if (isFirst) answering.delete(nameKey(ref));
    throw error;
  });
}

function nameKey({ project, tokenId, key }: IdempotencyRef): string {
  return `${project} ${tokenId} ${key}`;
}

type KnownRequest = Pick<Schema["idempotency_keys"], "body_hash" | "answer" | "replica">;

/** Undefined too for one whose process is gone, or failed at it. */
async function findRequest(
  { trx, now, replica }: WriteTransaction,
  { ref, answering }: KeyedRequest,
): Promise<KnownRequest | undefined> {
  const known = await trx
    .selectFrom("idempotency_keys")
    .select(["body_hash", "answer", "replica"])
    .where("project", "=", ref.project)
    .where("token_id", "=", ref.tokenId)
    .where("key", "=", ref.key)
    .where("created_at", ">", oldestTime(now))
    .executeTakeFirst();
  if (known === undefined || known.answer !== null) return known;
  const isAnswered =
    known.replica === replica.id
      ? answering.has(nameKey(ref))
      : known.replica !== null && (await replica.listRunning()).has(known.replica);
  return isAnswered ? known : undefined;
}

function readAnswer(known: KnownRequest, { ref, bodyHash }: KeyedRequest): string {
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
