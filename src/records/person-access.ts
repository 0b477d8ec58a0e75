import type { Kysely } from "kysely";
import { limits } from "../contract/limits.ts";
import { groupPrefix } from "../contract/people/member.ts";
import type { Person } from "../contract/people/person.ts";
import { type Membership, role } from "../contract/people/role.ts";
import type { Schema } from "./schema.ts";

/** A person, and what its own and its groups' memberships are now. */
export interface PersonAccess {
  readonly person: Person;
  readonly memberships: readonly Membership[];
  /** Whether its issuer has named it lately; true for the person of links. */
  readonly isConfirmed: boolean;
}

const confirmedMs = limits.confirmedDays * 86_400_000;

interface PersonQuery {
  readonly db: Kysely<Schema>;
  readonly now: Date;
  readonly id: string;
}

/** Undefined where there is no such person. */
export async function findPersonAccess({
  db,
  now,
  id,
}: PersonQuery): Promise<PersonAccess | undefined> {
  const row = await db.selectFrom("people").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined) return undefined;
  const isConfirmed = isConfirmedAt(row, now);
  const memberships = await listMemberships(db, isConfirmed ? row : { ...row, groups: "[]" });
  return { person: parsePersonRow(row), memberships, isConfirmed };
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
