import { type Signal, useSignal } from "@preact/signals";
import { groupPrefix, memberName } from "../../contract/people/member.ts";
import { personQuery } from "../../contract/people/person.ts";
import { type Role, role as roleSchema, roleTable } from "../../contract/people/role.ts";
import { service } from "../session/service.ts";
import { Dialog, DialogFormEnd } from "../shared/dialog.tsx";
import { refusedFields } from "../shared/field-errors.ts";
import { Field, TextField } from "../shared/field.tsx";
import { MaybeError } from "../shared/notice.tsx";

export function AddMemberDialog({ project, onClose }: { project: string; onClose: () => void }) {
  const form = useMemberForm();
  const submit = async (event: Event) => {
    event.preventDefault();
    if (await addFormMember(form, project)) onClose();
  };
  return (
    <Dialog title="Add a member" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <MaybeError error={form.failure.value} />
        <MemberKindField form={form} />
        <MemberField form={form} />
        <RoleField form={form} />
        <DialogFormEnd action={`Add to ${project}`} onCancel={onClose} />
      </form>
    </Dialog>
  );
}

function MemberKindField({ form: { kind, message } }: { readonly form: MemberForm }) {
  const choose = (chosen: MemberKind) => {
    kind.value = chosen;
    message.value = undefined;
  };
  return (
    <fieldset class="labelled">
      <legend>Who</legend>
      {Object.keys(memberKinds).map((each) => (
        <MemberKindRadio
          key={each}
          kind={each as MemberKind}
          isChosen={kind.value === each}
          onChoose={choose}
        />
      ))}
    </fieldset>
  );
}

interface MemberKindRadioProps {
  readonly kind: MemberKind;
  readonly isChosen: boolean;
  readonly onChoose: (kind: MemberKind) => void;
}

function MemberKindRadio({ kind, isChosen, onChoose }: MemberKindRadioProps) {
  return (
    <label class="radio">
      <input type="radio" name="kind" checked={isChosen} onChange={() => onChoose(kind)} />
      {memberKinds[kind].title}
    </label>
  );
}

function MemberField({ form: { kind, text, message } }: { readonly form: MemberForm }) {
  const { title, example } = memberKinds[kind.value];
  return <TextField label={title} hint={`Such as ${example}`} error={message.value} text={text} />;
}

function RoleField({ form: { role } }: { readonly form: MemberForm }) {
  return (
    <Field label="Role" hint={roleTable[role.value].does}>
      {(ids) => (
        <RoleChoice {...ids} role={role.value} onChoose={(chosen) => (role.value = chosen)} />
      )}
    </Field>
  );
}

/** By what somebody is added, and what an example looks like. */
const memberKinds = {
  email: { title: "Person, by e-mail", example: "ada@example.com" },
  group: { title: "Single sign-on group", example: "vision-team" },
  person: { title: "Person, by id", example: "person-…" },
} as const;
type MemberKind = keyof typeof memberKinds;

interface MemberForm {
  readonly kind: Signal<MemberKind>;
  readonly text: Signal<string>;
  readonly role: Signal<Role>;
  readonly message: Signal<string | undefined>;
  readonly failure: Signal<unknown>;
}

function useMemberForm(): MemberForm {
  return {
    kind: useSignal<MemberKind>("email"),
    text: useSignal(""),
    role: useSignal<Role>("developer"),
    message: useSignal<string | undefined>(undefined),
    failure: useSignal<unknown>(undefined),
  };
}

/** Adds the form's member. @returns false where the form then says what is wrong */
async function addFormMember(form: MemberForm, project: string): Promise<boolean> {
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
  message.value = kind.value === "group" ? "Use 1 to 200 characters" : "An id starts with person-";
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
      : `${people.length} people have this address. Ask for the id that the page “Account” shows.`;
  return undefined;
}

interface RoleChoiceProps {
  readonly role: Role;
  readonly onChoose: (role: Role) => unknown;
  /** For screen readers, where no label leads to it. */
  readonly label?: string;
  readonly id?: string;
  /** Of the text that says more. */
  readonly describedBy?: string;
}

export function RoleChoice({ role, onChoose, label, id, describedBy }: RoleChoiceProps) {
  return (
    <select
      id={id}
      aria-label={label}
      aria-describedby={describedBy}
      value={role}
      onChange={({ currentTarget }) => onChoose(roleSchema.parse(currentTarget.value))}
    >
      {roleSchema.options.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  );
}
