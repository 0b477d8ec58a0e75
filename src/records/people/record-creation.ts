import { ServiceError } from "../../contract/errors.ts";
import { addAuditEntry, type AuditedChange } from "./add-audit-entry.ts";
import type { WriteTransaction } from "../database/store.ts";

/** Where an Idempotency-Key counts: for one token or session of one project. */
export interface IdempotencyRef {
  readonly project: string;
  /** Or that of the session. */
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

/** Adds what was created to the audit, and stores the answer where repetitions get it too. */
export async function recordCreation<T extends { readonly id: string }>(
  writing: WriteTransaction,
  created: T,
  { answered, audit }: CreatingRequest<T>,
): Promise<void> {
  await addAuditEntry(writing, audit, { subject: created.id });
  await recordAnswer(writing, created, answered);
}

/** Stores the answer where repetitions of the request get it too. */
export async function recordAnswer<T>(
  writing: WriteTransaction,
  created: T,
  answered: IdempotentAnswer<T> | undefined,
): Promise<void> {
  if (answered === undefined) return;
  await updateAnswer(writing, answered.ref, answered.buildAnswer(created));
}

/** @throws ServiceError unavailable where another replica has taken the request for abandoned */
export async function updateAnswer(
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
