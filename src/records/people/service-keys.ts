import { randomBytes } from "node:crypto";
import type { Store } from "../database/store.ts";

const keyBytes = 32;

/** Secrets that the service makes for itself, the same for good and at every replica. */
export function serviceKeys(store: Store) {
  return {
    /** The secret of a name, which is made where it is not there. */
    read: (name: string) => readServiceKey(store, name),
  };
}

async function readServiceKey(store: Store, name: string): Promise<Buffer> {
  const keys = store.db.selectFrom("service_keys").select("value").where("name", "=", name);
  const stored = await keys.executeTakeFirst();
  if (stored) return Buffer.from(stored.value, "base64");
  const value = randomBytes(keyBytes).toString("base64");
  await store.db
    .insertInto("service_keys")
    .values({ name, value })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return Buffer.from((await keys.executeTakeFirstOrThrow()).value, "base64");
}
