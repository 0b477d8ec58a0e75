import type { CreatedToken } from "../../contract/people/token.ts";
import { Dialog, DialogFormEnd } from "../shared/dialog.tsx";
import { Field } from "../shared/field.tsx";
import { ErrorNotice } from "../shared/notice.tsx";
import { TextField } from "../shared/text-field.tsx";
import { ScopeChoice } from "./scope-choice.tsx";
import { createFormToken, lifetimes, type TokenForm, useTokenForm } from "./token-form.ts";

interface CreateTokenDialogProps {
  readonly onCreated: (token: CreatedToken) => void;
  readonly onClose: () => void;
}

export function CreateTokenDialog({ onCreated, onClose }: CreateTokenDialogProps) {
  const form = useTokenForm();
  const submit = async (event: Event) => {
    event.preventDefault();
    const created = await createFormToken(form);
    if (created !== undefined) onCreated(created);
  };
  return (
    <Dialog title="New token" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        {form.failure.value !== undefined && <ErrorNotice error={form.failure.value} />}
        <TextField
          label="Name"
          hint="Where it is used, such as “CI of acme/models”"
          error={form.messages.value["name"]}
          text={form.name}
        />
        <ScopeChoice form={form} />
        <LifetimeField form={form} />
        <DialogFormEnd action="Create token" onCancel={onClose} />
      </form>
    </Dialog>
  );
}

function LifetimeField({ form: { lifetime, messages } }: { readonly form: TokenForm }) {
  return (
    <Field label="Expires in" error={messages.value["expiresInDays"]}>
      {({ id, describedBy }) => (
        <select
          id={id}
          aria-describedby={describedBy}
          value={lifetime.value}
          onChange={({ currentTarget }) => (lifetime.value = currentTarget.value)}
        >
          {Object.keys(lifetimes).map((text) => (
            <option key={text}>{text}</option>
          ))}
        </select>
      )}
    </Field>
  );
}
