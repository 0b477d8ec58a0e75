import { type Signal, useSignal } from "@preact/signals";
import { limits } from "../../contract/limits.ts";
import {
  type CreatedToken,
  type Scope,
  scope as scopeSchema,
  scopeTable,
  tokenRequest,
} from "../../contract/people/token.ts";
import { service } from "../session/service.ts";
import { Dialog, DialogFormEnd } from "../shared/dialog.tsx";
import { type FieldMessages, invalidFields, refusedFields } from "../shared/field-errors.ts";
import { SelectField, TextField } from "../shared/field.tsx";
import { ErrorNotice } from "../shared/notice.tsx";
import { type HeadersOf, useStart } from "../shared/use-start.ts";

interface CreateTokenDialogProps {
  readonly onCreated: (token: CreatedToken) => void;
  readonly onClose: () => void;
}

export function CreateTokenDialog({ onCreated, onClose }: CreateTokenDialogProps) {
  const form = useTokenForm();
  const { start } = useStart();
  const submit = async (event: Event) => {
    event.preventDefault();
    const created = await start((headersOf) => createFormToken(form, headersOf));
    if (created !== undefined) onCreated(created);
  };
  return (
    <Dialog title="New token" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        {form.failure.value !== undefined && <ErrorNotice error={form.failure.value} />}
        <TextField
          label="Name"
          hint="Where you use it, such as “CI of acme/models”"
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
    <SelectField
      label="Expires in"
      error={messages.value["expiresInDays"]}
      value={lifetime.value}
      options={Object.keys(lifetimes).map((text) => [text, text])}
      onChange={(text) => (lifetime.value = text)}
    />
  );
}

/** Days for which a token is valid; null for ever. */
const lifetimes: Readonly<Record<string, number | null>> = {
  "7 days": 7,
  "30 days": 30,
  "90 days": limits.tokenDays,
  "1 year": 365,
  never: null,
};

interface TokenForm {
  readonly name: Signal<string>;
  readonly scopes: Signal<readonly Scope[]>;
  /** A key of `lifetimes`. */
  readonly lifetime: Signal<string>;
  readonly messages: Signal<FieldMessages>;
  readonly failure: Signal<unknown>;
}

function useTokenForm(): TokenForm {
  return {
    name: useSignal(""),
    scopes: useSignal<readonly Scope[]>(["jobs:read", "jobs:write", "models:write"]),
    lifetime: useSignal("90 days"),
    messages: useSignal<FieldMessages>({}),
    failure: useSignal<unknown>(undefined),
  };
}

/** Creates the form's token; undefined where the form then says what is wrong. */
async function createFormToken(
  form: TokenForm,
  headersOf: HeadersOf,
): Promise<CreatedToken | undefined> {
  const parsed = tokenRequest.safeParse({
    name: form.name.value.trim(),
    scopes: form.scopes.value,
    expiresInDays: lifetimes[form.lifetime.value],
  });
  form.messages.value = parsed.success ? {} : invalidFields(parsed.error);
  if (!parsed.success) return undefined;
  try {
    const body = parsed.data;
    return await service.call("createToken", { body, headers: headersOf(body) });
  } catch (error) {
    form.messages.value = refusedFields(error);
    form.failure.value = error;
    return undefined;
  }
}

function ScopeChoice({ form }: { readonly form: TokenForm }) {
  const error = form.messages.value["scopes"];
  return (
    <fieldset class="labelled">
      <legend>Scopes</legend>
      {scopeSchema.options.map((scope) => (
        <ScopeCheckbox key={scope} scope={scope} form={form} />
      ))}
      {error !== undefined && <p class="bad">{error}</p>}
    </fieldset>
  );
}

function ScopeCheckbox({ scope, form: { scopes } }: { scope: Scope; form: TokenForm }) {
  const toggle = (isOn: boolean) => {
    const others = scopes.value.filter((each) => each !== scope);
    scopes.value = isOn ? [...others, scope] : others;
  };
  return (
    <label class="choice">
      <input
        type="checkbox"
        checked={scopes.value.includes(scope)}
        onChange={({ currentTarget }) => toggle(currentTarget.checked)}
      />
      <code>{scope}</code>
      <span class="soft">{scopeTable[scope]}</span>
    </label>
  );
}
