import type { Store, WriteTransaction } from "../database/store.ts";

/** An identity token on its exchange. */
export interface SpentIdentity {
  readonly issuer: string;
  /** The issuer's name of the token. */
  readonly jti: string;
  /** When the token has expired for every check, milliseconds since 1970. */
  readonly until: number;
}

const retentionMs = 86_400_000;

/** Identity tokens that were exchanged, so that none is exchanged twice. */
export function identityRecords(store: Store) {
  return {
    /** Deletes tokens that expired so long ago that no clock set back makes them count again. */
    async purge(): Promise<void> {
      await store.db
        .deleteFrom("spent_identities")
        .where("until", "<", store.now().getTime() - retentionMs)
        .execute();
    },
  };
}

/** False where the identity token was spent before. */
export async function spendIdentity(
  { trx }: WriteTransaction,
  { issuer, jti, until }: SpentIdentity,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto("spent_identities")
    .values({ issuer, jti, until })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}
