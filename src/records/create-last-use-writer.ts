import type { Schema } from "./schema.ts";
import type { Store } from "./store.ts";

/** Tables of what requests are authenticated by. */
type UsedTable = keyof Pick<Schema, "tokens" | "sessions">;

const precisionMs = 60_000;
/** Tokens or sessions whose last use is remembered, so that it is not written at each request. */
const maxRemembered = 10_000;

/**
 * Gives a function that records the use of a token or a session, at most once a minute. Nobody
 * waits for it: a request that reads must not fail because something cannot be written.
 */
export function createLastUseWriter(store: Store, table: UsedTable): (id: string) => void {
  const remembered = new Map<string, number>();
  return (id) => {
    const now = store.now().getTime();
    if (now - (remembered.get(id) ?? -Infinity) < precisionMs) return;
    if (remembered.size >= maxRemembered) remembered.clear();
    remembered.set(id, now);
    updateLastUse(store, table, id).catch(() => remembered.delete(id));
  };
}

async function updateLastUse(store: Store, table: UsedTable, id: string): Promise<void> {
  const now = store.now();
  const stale = new Date(now.getTime() - precisionMs).toISOString();
  await store.db
    .updateTable(table)
    .set({ last_used_at: now.toISOString() })
    .where("id", "=", id)
    .where((eb) => eb.or([eb("last_used_at", "is", null), eb("last_used_at", "<", stale)]))
    .execute();
}
