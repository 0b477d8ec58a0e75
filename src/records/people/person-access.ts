import type { Kysely } from "kysely";
import { newId } from "../../contract/id.ts";
import { limits } from "../../contract/limits.ts";
import { groupPrefix } from "../../contract/people/member.ts";
import type { Person } from "../../contract/people/person.ts";
import { type Membership, role } from "../../contract/people/role.ts";
import type { Schema } from "../database/schema.ts";
import type { WriteTransaction } from "../database/store.ts";

/** A person, and what its own and its groups' memberships are now. */
export interface PersonAccess {
  readonly person: Person;
  readonly memberships: readonly Membership[];
}

const confirmedMs = limits.confirmedDays * 86_400_000;

/** Undefined if there is no such person. */
export async function findPersonAccess(
  db: Kysely<Schema>,
  now: Date,
  id: string,
): Promise<PersonAccess | undefined> {
  const row = await db.selectFrom("people").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined) return undefined;
  const isConfirmed = isConfirmedAt(row, now);
  const memberships = await listMemberships(db, isConfirmed ? row : { ...row, groups: "[]" });
  return { person: parsePersonRow(row), memberships };
}

function isConfirmedAt({ confirmed_at: at }: Schema["people"], now: Date): boolean {
  return at === null || Date.parse(at) > now.getTime() - confirmedMs;
}

async function listMemberships(
  db: Kysely<Schema>,
  { id, issuer, groups }: Schema["people"],
): Promise<Membership[]> {
  const names = parseGroups(groups).map((group) => groupPrefix + group);
  const rows = await db
    .selectFrom("members")
    .select(["project", "role"])
    .where((eb) => {
      const own = eb("member", "=", id);
      if (issuer === null || names.length === 0) return own;
      return eb.or([own, eb.and([eb("member", "in", names), eb("issuer", "=", issuer)])]);
    })
    .execute();
  return rows.map((row) => ({ project: row.project, role: role.parse(row.role) }));
}

function parsePersonRow({ id, name, email, issuer, subject }: Schema["people"]): Person {
  return { id, name, email, issuer, subject };
}

/** `insertPerson` has written a list of texts. */
function parseGroups(groups: string): string[] {
  return JSON.parse(groups) as string[];
}

/** What an issuer says of somebody who signs in. */
export interface IssuedPerson {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  readonly email: string | null;
  readonly groups: readonly string[];
}

/** Creates the person, or records what its issuer says now. @returns its id */
export async function savePerson(
  { trx, now }: WriteTransaction,
  { issuer, subject, name, email, groups }: IssuedPerson,
): Promise<Person["id"]> {
  const created_at = now.toISOString();
  const said = { name, email, groups: JSON.stringify(groups), confirmed_at: created_at };
  const { id } = await trx
    .insertInto("people")
    .values({ id: newId("person", now), issuer, subject, ...said, created_at, had_role: 0 })
    .onConflict((conflict) => conflict.columns(["issuer", "subject"]).doUpdateSet(said))
    .returning("id")
    .executeTakeFirstOrThrow();
  return id;
}
