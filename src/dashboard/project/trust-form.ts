import { type Signal, useSignal } from "@preact/signals";
import { type TrustCheck, trustCheckRequest } from "../../contract/people/trust-policy.ts";
import { service } from "../session/service.ts";

const example = {
  iss: "https://token.actions.githubusercontent.com",
  repository_owner_id: "9919",
  repository_id: "123456",
  event_name: "push",
  ref: "refs/heads/main",
};

export interface TrustForm {
  /** As JSON. */
  readonly claims: Signal<string>;
  /** What is wrong with the claims. */
  readonly message: Signal<string | undefined>;
  readonly answer: Signal<TrustCheck | undefined>;
  readonly failure: Signal<unknown>;
}

export function useTrustForm(): TrustForm {
  return {
    claims: useSignal(JSON.stringify(example, null, 2)),
    message: useSignal<string | undefined>(undefined),
    answer: useSignal<TrustCheck | undefined>(undefined),
    failure: useSignal<unknown>(undefined),
  };
}

/** Asks which token the form's claims give; the form then says it, or what is wrong. */
export async function checkFormClaims({ claims, message, answer, failure }: TrustForm) {
  [answer.value, failure.value] = [undefined, undefined];
  const body = parseClaimsText(claims.value);
  message.value = body === undefined ? "Must be an object of texts, as JSON" : undefined;
  if (body === undefined) return;
  try {
    answer.value = await service.call("checkTrustPolicy", { body });
  } catch (error) {
    failure.value = error;
  }
}

function parseClaimsText(text: string) {
  try {
    return trustCheckRequest.safeParse({ claims: JSON.parse(text) }).data;
  } catch {
    return undefined;
  }
}
