import { newId } from "../contract/id.ts";
import type { Person } from "../contract/people/person.ts";
import type { WriteTransaction } from "./store.ts";

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
