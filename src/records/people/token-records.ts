import { addAuditEntry, type AuditedChange } from "./audit-records.ts";
import { createOnce, type CreatingRequest } from "./idempotency-records.ts";
import { spendIdentity, type SpentIdentity } from "./identity-records.ts";
import { findPersonAccess } from "./person-access.ts";
import { ServiceError } from "../../contract/errors.ts";
import { newId } from "../../contract/id.ts";
import { type Workflow, workflow as workflowSchema } from "../../contract/people/principal.ts";
import type { Membership } from "../../contract/people/role.ts";
import { type CreatedToken, type Scope, type Token, token } from "../../contract/people/token.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

/** A token to create. What it allows and its hash are stored, and not the token itself. */
export interface NewToken {
  readonly secret: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly prefix: string;
  /** SHA-256 of the token, hexadecimal. */
  readonly hash: string;
  readonly expiresAt: string | null;
  /** Trust policy that it was issued under for an identity token. */
  readonly policy: string | null;
  /** The run that it was given to, where it was issued for an identity token. */
  readonly workflow?: Workflow | undefined;
  /** Whose token it is; without it no person's. */
  readonly personId?: string | null;
}

/** A token with its project, and with the run of a workflow that it was given to. */
export interface FoundToken {
  readonly project: string;
  readonly token: Token;
  /** What the person may do in the project now whose token it is; null where it is nobody's. */
  readonly memberships: readonly Membership[] | null;
  readonly workflow: Workflow | null;
}

/** How long tokens that were issued for identity tokens stay listed after they expire. */
const retentionMs = 86_400_000;

export function tokenRecords(store: Store) {
  const { db, now } = store;
  return {
    create: (project: string, newToken: NewToken, { idempotency, audit }: CreatingRequest = {}) =>
      createOnce(store, idempotency, async (writing) => {
        const created = await insertToken(writing, project, newToken);
        await addAuditEntry(writing, audit, created.id, project);
        return created;
      }),

    /**
     * Creates a token in place of another one, which then ends at a time.
     * @throws ServiceError token_replaced
     */
    replace: (
      newToken: NewToken,
      { project, id, endsAt }: Readonly<Record<"project" | "id" | "endsAt", string>>,
      audit?: AuditedChange,
    ) =>
      runWriteTransaction(store, async (writing) => {
        const created = await insertToken(writing, project, newToken);
        const { numUpdatedRows } = await writing.trx
          .updateTable("tokens")
          .set({ expires_at: endsAt, replaced_by: created.id })
          .where("id", "=", id)
          .where("project", "=", project)
          .where("replaced_by", "is", null)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) throw await findReplacedError(writing, id);
        await addAuditEntry(writing, audit, created.id, project);
        return created;
      }),

    /** Creates the token for an identity token; undefined where that was spent before. */
    exchange: (project: string, newToken: NewToken, identity: SpentIdentity) =>
      runWriteTransaction(store, async (writing) => {
        if (!(await spendIdentity(writing, identity))) return undefined;
        const created = await insertToken(writing, project, newToken);
        const { id: tokenId, name: tokenName } = created;
        const change = { project, action: "exchangeToken", tokenId, tokenName };
        await addAuditEntry(writing, change, tokenId);
        return created;
      }),

    /** Also finds tokens that have expired or were revoked. */
    async findByHash(hash: string): Promise<FoundToken | undefined> {
      return parseFoundToken(
        store,
        await selectTokens(db).where("hash", "=", hash).executeTakeFirst(),
      );
    },

    /** Of any project; also finds tokens that have expired or were revoked. */
    async findById(id: string): Promise<FoundToken | undefined> {
      return parseFoundToken(
        store,
        await selectTokens(db).where("tokens.id", "=", id).executeTakeFirst(),
      );
    },

    /** Tokens of the project, or those of a person there. */
    async list(project: string, personId?: string | null): Promise<Token[]> {
      let rows = selectTokens(db).where("project", "=", project);
      if (personId !== undefined) rows = rows.where("person_id", "=", personId);
      return (await rows.orderBy("tokens.id", "desc").execute()).map(parseTokenRow);
    },

    async find(project: string, id: string): Promise<Token | undefined> {
      const row = await selectTokens(db)
        .where("tokens.id", "=", id)
        .where("project", "=", project)
        .executeTakeFirst();
      return row && parseTokenRow(row);
    },

    /** False if there is no such token. */
    revoke: (project: string, id: string, audit?: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const at = writing.now.toISOString();
        const { numUpdatedRows } = await writing.trx
          .updateTable("tokens")
          .set((eb) => ({ revoked_at: eb.fn.coalesce("revoked_at", eb.val(at)) }))
          .where("id", "=", id)
          .where("project", "=", project)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return false;
        await addAuditEntry(writing, audit, id);
        return true;
      }),

    /**
     * Deletes tokens that were issued for identity tokens, some time after they expire: there is
     * one for each run of a workflow.
     */
    async purge(): Promise<void> {
      const oldest = new Date(now().getTime() - retentionMs).toISOString();
      await db
        .deleteFrom("tokens")
        .where("policy", "is not", null)
        .where("expires_at", "<", oldest)
        .execute();
    },

    /** Records the token's use, some time later. */
    touch: createLastUseWriter(store, "tokens"),
  };
}

async function parseFoundToken(
  { db, now }: Store,
  row: TokenRow | undefined,
): Promise<FoundToken | undefined> {
  if (row === undefined) return undefined;
  const { person_id: id, workflow } = row;
  const owner = id === null ? undefined : await findPersonAccess(db, now(), id);
  return {
    project: row.project,
    token: parseTokenRow(row),
    memberships: id === null ? null : (owner?.memberships ?? []),
    workflow: workflow === null ? null : workflowSchema.parse(JSON.parse(workflow)),
  };
}

async function findReplacedError({ trx }: WriteTransaction, id: string): Promise<ServiceError> {
  const row = selectTokens(trx).where("tokens.id", "=", id);
  const { replaced_by: successor } = await row.executeTakeFirstOrThrow();
  const message = `Token "${id}" was replaced by "${successor}", which can be replaced instead`;
  return new ServiceError("token_replaced", message);
}

async function insertToken(
  { trx, now }: WriteTransaction,
  project: string,
  newToken: NewToken,
): Promise<CreatedToken> {
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
    workflow: newToken.workflow === undefined ? null : JSON.stringify(newToken.workflow),
    person_id: newToken.personId ?? null,
    replaced_by: null,
  };
  await trx.insertInto("tokens").values(row).execute();
  const stored = selectTokens(trx).where("tokens.id", "=", row.id);
  return { ...parseTokenRow(await stored.executeTakeFirstOrThrow()), token: newToken.secret };
}

/** Tokens with the names of the people whose they are. */
function selectTokens(db: Store["db"]) {
  return db
    .selectFrom("tokens")
    .leftJoin("people", "people.id", "tokens.person_id")
    .selectAll("tokens")
    .select("people.name as person_name");
}

type TokenRow = Schema["tokens"] & { readonly person_name: string | null };

function parseTokenRow(row: TokenRow): Token {
  return token.parse({
    id: row.id,
    project: row.project,
    name: row.name,
    scopes: JSON.parse(row.scopes),
    prefix: row.prefix,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    replacedBy: row.replaced_by,
    policy: row.policy,
    person: row.person_id === null ? null : { id: row.person_id, name: row.person_name },
  });
}

const precisionMs = 60_000;
/** Tokens or sessions whose last use is remembered, so that it is not written at each request. */
const maxRemembered = 10_000;

/**
 * Gives a function that records the use of a token or a session, at most once a minute. Nobody
 * waits for it: a request that reads must not fail because something cannot be written.
 */
export function createLastUseWriter(
  { db, now }: Store,
  table: "tokens" | "sessions",
): (id: string) => void {
  const remembered = new Map<string, number>();
  return (id) => {
    const at = now();
    if (at.getTime() - (remembered.get(id) ?? -Infinity) < precisionMs) return;
    if (remembered.size >= maxRemembered) remembered.clear();
    remembered.set(id, at.getTime());
    const stale = new Date(at.getTime() - precisionMs).toISOString();
    db.updateTable(table)
      .set({ last_used_at: at.toISOString() })
      .where("id", "=", id)
      .where((eb) => eb.or([eb("last_used_at", "is", null), eb("last_used_at", "<", stale)]))
      .execute()
      .catch(() => remembered.delete(id));
  };
}
