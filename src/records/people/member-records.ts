import { ServiceError } from "../../contract/errors.ts";
import { limits } from "../../contract/limits.ts";
import { groupPrefix, type Member, member as memberSchema } from "../../contract/people/member.ts";
import {
  administratorId,
  type Person,
  person as personSchema,
} from "../../contract/people/person.ts";
import { defaultProject } from "../../contract/project.ts";
import type { Membership, Role } from "../../contract/people/role.ts";
import { addAuditEntry, type AuditedChange } from "./audit-records.ts";
import { findPersonAccess } from "./person-access.ts";
import type { Schema } from "../database/schema.ts";
import { runWriteTransaction, type Store, type WriteTransaction } from "../database/store.ts";

interface NewMember {
  readonly project: string;
  /** Id of a person, or `group:` and a name. */
  readonly member: string;
  /** Whose group it is; null for a person. */
  readonly issuer: string | null;
  readonly role: Role;
}

/** People, and groups, with roles in projects. */
export function memberRecords(store: Store) {
  const { db } = store;
  return {
    /** People of an e-mail address, those first who were first to sign in. */
    async findPeople(email: string): Promise<Person[]> {
      const rows = await db
        .selectFrom("people")
        .select(["id", "name", "email", "issuer", "subject"])
        .where((eb) => eb(eb.fn<string>("lower", ["email"]), "=", email.toLowerCase()))
        .orderBy("id")
        .limit(limits.foundPeople)
        .execute();
      return rows.map((row) => personSchema.parse(row));
    },

    /** Of a person; none if there is no such person. */
    async listMemberships(personId: string): Promise<readonly Membership[]> {
      return (await findPersonAccess(db, store.now(), personId))?.memberships ?? [];
    },

    async list(project: string): Promise<Member[]> {
      const rows = await selectMembers(db, project).orderBy("members.member").execute();
      return rows.map(parseMemberRow);
    },

    /**
     * Gives a role; undefined if there is no such person.
     * @throws ServiceError too_many_members
     */
    put: (
      { project, member, issuer, role }: NewMember,
      audit: AuditedChange,
    ): Promise<Member | undefined> =>
      runWriteTransaction(store, async (writing) => {
        const { trx, now } = writing;
        if (!member.startsWith(groupPrefix)) {
          const person = trx.selectFrom("people").select("id").where("id", "=", member);
          if ((await person.executeTakeFirst()) === undefined) return undefined;
        }
        const given = { role, issuer };
        await trx
          .insertInto("members")
          .values({ project, member, ...given, created_at: now.toISOString() })
          .onConflict((conflict) => conflict.columns(["project", "member"]).doUpdateSet(given))
          .execute();
        await requireRoom(writing, project);
        await addAuditEntry(writing, audit, `${member} as ${role}`, project);
        const row = await selectMembers(trx, project)
          .where("members.member", "=", member)
          .executeTakeFirstOrThrow();
        return parseMemberRow(row);
      }),

    /** False if there is no such member. */
    remove: ({ project, member }: Pick<NewMember, "project" | "member">, audit: AuditedChange) =>
      runWriteTransaction(store, async (writing) => {
        const { numDeletedRows } = await writing.trx
          .deleteFrom("members")
          .where("project", "=", project)
          .where("member", "=", member)
          .executeTakeFirst();
        if (numDeletedRows > 0n) await addAuditEntry(writing, audit, member, project);
        return numDeletedRows > 0n;
      }),
  };
}

/** Creates the person of links, unless it is there. */
export async function saveAdministrator({ trx, now }: WriteTransaction): Promise<void> {
  const nobody = { issuer: null, subject: null, email: null, groups: "[]", confirmed_at: null };
  const created_at = now.toISOString();
  await trx
    .insertInto("people")
    .values({ id: administratorId, name: "administrator", ...nobody, created_at, had_role: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Makes the person of links an administrator of the installation, whatever it was before. */
export async function makeAdministrator({ trx, now }: WriteTransaction): Promise<void> {
  const created_at = now.toISOString();
  const role = { role: "admin" };
  await trx
    .insertInto("members")
    .values({ project: defaultProject, member: administratorId, issuer: null, ...role, created_at })
    .onConflict((conflict) => conflict.columns(["project", "member"]).doUpdateSet(role))
    .execute();
}

async function requireRoom({ trx }: WriteTransaction, project: string): Promise<void> {
  const { count } = await trx
    .selectFrom("members")
    .select((eb) => eb.fn.countAll<number | bigint | string>().as("count"))
    .where("project", "=", project)
    .executeTakeFirstOrThrow();
  if (Number(count) <= limits.members) return;
  const message = `The project has ${limits.members} members, the most allowed; use groups`;
  throw new ServiceError("too_many_members", message);
}

function selectMembers(db: Store["db"], project: string) {
  return db
    .selectFrom("members")
    .leftJoin("people", "people.id", "members.member")
    .selectAll("members")
    .select(["people.id", "people.name", "people.email", "people.subject"])
    .select("people.issuer as person_issuer")
    .where("members.project", "=", project);
}

interface MemberRow extends Omit<Schema["members"], "project"> {
  readonly id: string | null;
  readonly name: string | null;
  readonly email: string | null;
  readonly subject: string | null;
  readonly person_issuer: string | null;
}

function parseMemberRow(row: MemberRow): Member {
  const { id, name, email, subject, person_issuer: personIssuer } = row;
  return memberSchema.parse({
    member: row.member,
    person: id === null ? null : { id, name, email, issuer: personIssuer, subject },
    issuer: row.issuer,
    role: row.role,
    createdAt: row.created_at,
  });
}
