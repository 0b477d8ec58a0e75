import { type Scope, scope as scopeSchema, scopeTable } from "../../contract/token.ts";
import type { TokenForm } from "./token-form.ts";

/** The scopes of a token, with what each allows. */
export function ScopeChoice({ form: { scopes, messages } }: { readonly form: TokenForm }) {
  const toggle = (scope: Scope, isOn: boolean) => {
    const others = scopes.value.filter((each) => each !== scope);
    scopes.value = isOn ? [...others, scope] : others;
  };
  const error = messages.value["scopes"];
  return (
    <fieldset class="labelled">
      <legend>Scopes</legend>
      {scopeSchema.options.map((scope) => (
        <label key={scope} class="choice">
          <input
            type="checkbox"
            checked={scopes.value.includes(scope)}
            onChange={({ currentTarget }) => toggle(scope, currentTarget.checked)}
          />
          <code>{scope}</code>
          <span class="soft">{scopeTable[scope]}</span>
        </label>
      ))}
      {error !== undefined && <p class="bad">{error}</p>}
    </fieldset>
  );
}
