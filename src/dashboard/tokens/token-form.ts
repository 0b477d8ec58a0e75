import { type Signal, useSignal } from "@preact/signals";
import { limits } from "../../contract/limits.ts";
import { type CreatedToken, type Scope, tokenRequest } from "../../contract/people/token.ts";
import { service } from "../session/service.ts";
import { type FieldMessages, invalidFields, refusedFields } from "../shared/field-errors.ts";

/** Days for which a token is valid; null for ever. */
export const lifetimes: Readonly<Record<string, number | null>> = {
  "7 days": 7,
  "30 days": 30,
  "90 days": limits.tokenDays,
  "1 year": 365,
  never: null,
};

export interface TokenForm {
  readonly name: Signal<string>;
  readonly scopes: Signal<readonly Scope[]>;
  /** A key of `lifetimes`. */
  readonly lifetime: Signal<string>;
  readonly messages: Signal<FieldMessages>;
  readonly failure: Signal<unknown>;
}

export function useTokenForm(): TokenForm {
  return {
    name: useSignal(""),
    scopes: useSignal<readonly Scope[]>(["jobs:read", "jobs:write", "models:write"]),
    lifetime: useSignal("90 days"),
    messages: useSignal<FieldMessages>({}),
    failure: useSignal<unknown>(undefined),
  };
}

/** Creates the form's token; undefined where the form then says what is wrong. */
export async function createFormToken(form: TokenForm): Promise<CreatedToken | undefined> {
  const parsed = tokenRequest.safeParse({
    name: form.name.value.trim(),
    scopes: form.scopes.value,
    expiresInDays: lifetimes[form.lifetime.value],
  });
  form.messages.value = parsed.success ? {} : invalidFields(parsed.error);
  if (!parsed.success) return undefined;
  try {
    const headers = { "idempotency-key": crypto.randomUUID() };
    return await service.call("createToken", { body: parsed.data, headers });
  } catch (error) {
    form.messages.value = refusedFields(error);
    form.failure.value = error;
    return undefined;
  }
}
