import { type Signal, useSignal } from "@preact/signals";
import { groupPrefix, memberName } from "../../contract/people/member.ts";
import { personQuery } from "../../contract/people/person.ts";
import type { Role } from "../../contract/people/role.ts";
import { service } from "../session/service.ts";
import { refusedFields } from "../shared/field-errors.ts";

/** By what somebody is added, and what an example looks like. */
export const memberKinds = {
  email: { title: "Person, by e-mail", example: "ada@example.com" },
  group: { title: "Group of the single sign-on", example: "vision-team" },
  person: { title: "Person, by id", example: "person-…" },
} as const;
export type MemberKind = keyof typeof memberKinds;

export interface MemberForm {
  readonly kind: Signal<MemberKind>;
  readonly text: Signal<string>;
  readonly role: Signal<Role>;
  /** What is wrong with the text. */
  readonly message: Signal<string | undefined>;
  readonly failure: Signal<unknown>;
}

export function useMemberForm(): MemberForm {
  return {
    kind: useSignal<MemberKind>("email"),
    text: useSignal(""),
    role: useSignal<Role>("developer"),
    message: useSignal<string | undefined>(undefined),
    failure: useSignal<unknown>(undefined),
  };
}

/** Adds the form's member. @returns false where the form then says what is wrong */
export async function addFormMember(form: MemberForm, project: string): Promise<boolean> {
  form.failure.value = undefined;
  form.message.value = undefined;
  try {
    const member = await findMember(form);
    if (member === undefined) return false;
    const body = { role: form.role.value };
    await service.call("putMember", { params: { project, member }, body });
    return true;
  } catch (error) {
    form.message.value = refusedFields(error)["member"];
    if (form.message.value === undefined) form.failure.value = error;
    return false;
  }
}

/** The member's name in the interface; undefined where the form then says why there is none. */
async function findMember({ kind, text, message }: MemberForm): Promise<string | undefined> {
  const typed = text.value.trim();
  if (kind.value === "email") return findByEmail(typed, message);
  const { success, data } = memberName.safeParse(
    (kind.value === "group" ? groupPrefix : "") + typed,
  );
  if (success) return data;
  message.value = kind.value === "group" ? "Use 1 to 200 characters" : "An id begins with person-";
  return undefined;
}

async function findByEmail(
  typed: string,
  message: MemberForm["message"],
): Promise<string | undefined> {
  const { success, data } = personQuery.safeParse({ email: typed });
  const { people } = success ? await service.call("findPeople", { query: data }) : { people: [] };
  const [found] = people;
  if (found !== undefined && people.length === 1) return found.id;
  message.value =
    found === undefined
      ? "Nobody with this address has signed in. Ask them to sign in once, or add a group."
      : `${people.length} people have this address. Ask for the id on the page “Account”.`;
  return undefined;
}
