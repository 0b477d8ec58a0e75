import { roleTable } from "../../contract/people/role.ts";
import { Dialog, DialogFormEnd } from "../shared/dialog.tsx";
import { Field } from "../shared/field.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { TextField } from "../shared/text-field.tsx";
import {
  addFormMember,
  type MemberForm,
  type MemberKind,
  memberKinds,
  useMemberForm,
} from "./member-form.ts";
import { RoleChoice } from "./role-choice.tsx";

interface AddMemberDialogProps {
  readonly project: string;
  readonly onClose: () => void;
}

export function AddMemberDialog({ project, onClose }: AddMemberDialogProps) {
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
