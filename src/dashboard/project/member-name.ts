import { groupPrefix, type Member } from "../../contract/people/member.ts";

/** What a member is called. */
export function memberTitle({ member, person }: Member): string {
  return person?.name ?? member.slice(groupPrefix.length);
}

/** What distinguishes a member from others of the same name. */
export function memberDetail({ member, person, issuer }: Member): string {
  if (person === null) return `Group of ${new URL(issuer ?? "").host}`;
  return [person.email, member].filter((each) => each !== null).join(" · ");
}
