import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import type { AuditedChange } from "./audit-records.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** A request with an Idempotency-Key, which counts for one token or session of one project. */
export interface IdempotentRequest {
  readonly project: string;
  /** Or that of the session. */
  readonly tokenId: string;
  readonly key: string;
  /** Hash of what repetitions of the request have in common. */
  readonly hash: string;
  /** Encrypts the answer, which can contain a secret that only the caller may keep. */
  readonly seal: (answer: string) => string;
  readonly unseal: (sealed: string) => string;
}

/** The request that creates something, as far as it is recorded with that. */
export interface CreatingRequest {
  readonly idempotency?: IdempotentRequest | undefined;
  readonly audit?: AuditedChange | undefined;
}

const hourMs = 3_600_000;

export function idempotencyRecords({ db, now }: Store) {
  return {
    /**
     * The answer to the request that used the key first; undefined where none has.
     * @throws ServiceError idempotency_key_reused
     */
    async findAnswer(request: IdempotentRequest): Promise<string | undefined> {
      const sealed = await findSealedAnswer(db, now(), request);
      return sealed === undefined ? undefined : request.unseal(sealed);
    },

    /** Deletes keys after their lifetime. */
    async purge(): Promise<void> {
      await db
        .deleteFrom("idempotency_keys")
        .where("created_at", "<=", oldestTime(now()))
        .execute();
    },
  };
}

/** Another request with the same key has been answered since this one looked for an answer. */
export class AnsweredMeanwhile extends Error {
  readonly answer: string;

  constructor(answer: string) {
    super("The request has been answered");
    this.answer = answer;
  }
}

/**
 * Creates something in a transaction which also stores the answer that repetitions of the request
 * get.
 * @throws ServiceError idempotency_key_reused
 * @throws AnsweredMeanwhile
 */
export function createOnce<T>(
  store: Store,
  request: IdempotentRequest | undefined,
  create: (writing: WriteTransaction) => Promise<T>,
): Promise<T> {
  if (request === undefined) return runWriteTransaction(store, create);
  return runWriteTransaction(store, async (writing) => {
    const { trx, now } = writing;
    const { project, tokenId, key, hash, seal, unseal } = request;
    const earlier = await findSealedAnswer(trx, now, request);
    if (earlier !== undefined) throw new AnsweredMeanwhile(unseal(earlier));
    const created = await create(writing);
    const answer = seal(JSON.stringify(created));
    const row = { body_hash: hash, answer, created_at: now.toISOString() };
    await trx
      .insertInto("idempotency_keys")
      .values({ project, token_id: tokenId, key, ...row })
      // A key that has expired and is not purged yet.
      .onConflict((conflict) => conflict.columns(["project", "token_id", "key"]).doUpdateSet(row))
      .execute();
    return created;
  });
}

async function findSealedAnswer(
  db: Store["db"],
  now: Date,
  { project, tokenId, key, hash }: IdempotentRequest,
): Promise<string | undefined> {
  const known = await db
    .selectFrom("idempotency_keys")
    .select(["body_hash", "answer"])
    .where("project", "=", project)
    .where("token_id", "=", tokenId)
    .where("key", "=", key)
    .where("created_at", ">", oldestTime(now))
    .executeTakeFirst();
  if (known === undefined || known.body_hash === hash) return known?.answer;
  const message = `Idempotency-Key "${key}" was used with another request`;
  throw new ServiceError("idempotency_key_reused", message);
}

function oldestTime(now: Date): string {
  return new Date(now.getTime() - limits.idempotencyHours * hourMs).toISOString();
}
