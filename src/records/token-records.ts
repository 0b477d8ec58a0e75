import { newId } from "../contract/id.ts";
import { type Scope, type Token, token } from "../contract/token.ts";
import type { Schema } from "./schema.ts";
import type { Store } from "./store.ts";

/** A token to be kept: what it may do, and its hash instead of itself. */
export interface NewToken {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly prefix: string;
  /** SHA-256 of the token, hexadecimal. */
  readonly hash: string;
  readonly expiresAt: string | null;
  /** Trust policy by which it is given for an identity token. */
  readonly policy: string | null;
  /** The only repository, `owner/name`, that the token may have check runs written in; absent where it may in all. */
  readonly repository?: string | undefined;
}

const lastUsePrecisionMs = 60_000;
/** Tokens that were given for identity tokens are listed for so long after their end. */
const retentionMs = 86_400_000;

export function tokenRecords(store: Store) {
  return {
    async create(project: string, newToken: NewToken): Promise<Token> {
      const now = store.now();
      const row: Schema["tokens"] = {
        id: newId("token", now),
        project,
        name: newToken.name,
        prefix: newToken.prefix,
        hash: newToken.hash,
        scopes: JSON.stringify(newToken.scopes),
        created_at: now.toISOString(),
        expires_at: newToken.expiresAt,
        last_used_at: null,
        revoked_at: null,
        policy: newToken.policy,
        repository: newToken.repository ?? null,
      };
      await store.db.insertInto("tokens").values(row).execute();
      return parseTokenRow(row);
    },

    /** Also finds tokens that have expired or were revoked. */
    async findByHash(
      hash: string,
    ): Promise<{ project: string; token: Token; repository: string | null } | undefined> {
      const row = await store.db
        .selectFrom("tokens")
        .selectAll()
        .where("hash", "=", hash)
        .executeTakeFirst();
      return row && { project: row.project, token: parseTokenRow(row), repository: row.repository };
    },

    async list(project: string): Promise<Token[]> {
      const rows = await store.db
        .selectFrom("tokens")
        .selectAll()
        .where("project", "=", project)
        .orderBy("id", "desc")
        .execute();
      return rows.map(parseTokenRow);
    },

    /** False where there is no such token. */
    async revoke(project: string, id: string): Promise<boolean> {
      const { numUpdatedRows } = await store.db
        .updateTable("tokens")
        .set((eb) => ({
          revoked_at: eb.fn.coalesce("revoked_at", eb.val(store.now().toISOString())),
        }))
        .where("id", "=", id)
        .where("project", "=", project)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },

    purge: () => purgeTokens(store),

    /** Notes the token's use, at most once a minute. */
    async touch(id: string): Promise<void> {
      const now = store.now();
      const stale = new Date(now.getTime() - lastUsePrecisionMs).toISOString();
      await store.db
        .updateTable("tokens")
        .set({ last_used_at: now.toISOString() })
        .where("id", "=", id)
        .where((eb) => eb.or([eb("last_used_at", "is", null), eb("last_used_at", "<", stale)]))
        .execute();
    },
  };
}

/** Forgets tokens that were given for identity tokens, some time after their end: there is one for each run of a workflow. */
async function purgeTokens({ db, now }: Store): Promise<void> {
  const oldest = new Date(now().getTime() - retentionMs).toISOString();
  await db
    .deleteFrom("tokens")
    .where("policy", "is not", null)
    .where("expires_at", "<", oldest)
    .execute();
}

function parseTokenRow(row: Schema["tokens"]): Token {
  return token.parse({
    id: row.id,
    name: row.name,
    scopes: JSON.parse(row.scopes),
    prefix: row.prefix,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    policy: row.policy,
  });
}
