import { ServiceError } from "../contract/errors.ts";
import { limits } from "../contract/limits.ts";
import { type Store, runWriteTransaction, type WriteTransaction } from "./store.ts";

/** Where an Idempotency-Key holds: for one token of one project. */
export interface IdempotencyRef {
  readonly project: string;
  readonly tokenId: string;
  readonly key: string;
}

/** The answer to give again for a request that makes something, stored in the transaction that makes it. */
export interface IdempotentAnswer<T> {
  readonly ref: IdempotencyRef;
  readonly buildAnswer: (created: T) => string;
}

const hourMs = 3_600_000;

export function idempotencyRecords(store: Store) {
  const oldest = () =>
    new Date(store.now().getTime() - limits.idempotencyHours * hourMs).toISOString();

  return {
    /** Undefined where the request is the first with its key, and the caller's to answer. */
    async begin(ref: IdempotencyRef, bodyHash: string): Promise<string | undefined> {
      return runWriteTransaction(store, async (writing) => {
        const known = await selectKey(writing, ref)
          .selectAll()
          .where("created_at", ">", oldest())
          .executeTakeFirst();
        if (known === undefined) {
          const begun = {
            body_hash: bodyHash,
            answer: null,
            created_at: writing.now.toISOString(),
          };
          await writing.trx
            .insertInto("idempotency_keys")
            .values({ project: ref.project, token_id: ref.tokenId, key: ref.key, ...begun })
            .onConflict((conflict) =>
              conflict.columns(["project", "token_id", "key"]).doUpdateSet(begun),
            )
            .execute();
          return undefined;
        }
        if (known.body_hash !== bodyHash) {
          throw new ServiceError(
            "idempotency_key_reused",
            `Idempotency-Key "${ref.key}" was used with another request`,
          );
        }
        if (known.answer === null) {
          const message = `The first request with Idempotency-Key "${ref.key}" is still being answered`;
          throw new ServiceError("idempotency_in_progress", message, {
            headers: { "retry-after": "1" },
          });
        }
        return known.answer;
      });
    },

    async finish(ref: IdempotencyRef, answer: string): Promise<void> {
      await runWriteTransaction(store, (writing) => storeAnswer(writing, ref, answer));
    },

    /** The request was refused: its key may be used again. */
    async abandon(ref: IdempotencyRef): Promise<void> {
      await store.db
        .deleteFrom("idempotency_keys")
        .where("project", "=", ref.project)
        .where("token_id", "=", ref.tokenId)
        .where("key", "=", ref.key)
        .where("answer", "is", null)
        .execute();
    },

    /** Forgets the requests that died with the service before this one. */
    async reset(): Promise<void> {
      await store.db.deleteFrom("idempotency_keys").where("answer", "is", null).execute();
    },

    async purge(): Promise<void> {
      await store.db.deleteFrom("idempotency_keys").where("created_at", "<=", oldest()).execute();
    },
  };
}

export async function storeAnswer(
  writing: WriteTransaction,
  ref: IdempotencyRef,
  answer: string,
): Promise<void> {
  await writing.trx
    .updateTable("idempotency_keys")
    .set({ answer })
    .where("project", "=", ref.project)
    .where("token_id", "=", ref.tokenId)
    .where("key", "=", ref.key)
    .execute();
}

function selectKey(writing: WriteTransaction, ref: IdempotencyRef) {
  return writing.trx
    .selectFrom("idempotency_keys")
    .where("project", "=", ref.project)
    .where("token_id", "=", ref.tokenId)
    .where("key", "=", ref.key);
}
