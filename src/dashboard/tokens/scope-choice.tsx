import { type Scope, scope as scopeSchema, scopeTable } from "../../contract/people/token.ts";
import type { TokenForm } from "./token-form.ts";

/** The scopes of a token, with what each allows. */
export function ScopeChoice({ form }: { readonly form: TokenForm }) {
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

interface ScopeCheckboxProps {
  readonly scope: Scope;
  readonly form: TokenForm;
}

function ScopeCheckbox({ scope, form: { scopes } }: ScopeCheckboxProps) {
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
