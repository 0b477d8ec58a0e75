import type { Passkey } from "../../contract/people/passkey.ts";
import { announceSignIn } from "./session.ts";
import { service } from "./service.ts";

/** WebAuthn is loaded by whom uses it. */
const loadWebAuthn = () => import("@simplewebauthn/browser");

/** Has the browser ask for a passkey of this service, and signs in by it. */
export async function signInByPasskey(): Promise<void> {
  const { startAuthentication } = await loadWebAuthn();
  const optionsJSON = await service.call("beginPasskeySignIn", {});
  const { id, rawId, type, response } = await startAuthentication({ optionsJSON });
  const { clientDataJSON, authenticatorData, signature } = response;
  const proof = { clientDataJSON, authenticatorData, signature };
  const body = { credential: { id, rawId, type, response: proof } };
  await service.call("signInByPasskey", { body });
  await announceSignIn();
}

/** Has the browser create a passkey, and registers it. */
export async function createPasskey(name: string): Promise<Passkey> {
  const { startRegistration } = await loadWebAuthn();
  const optionsJSON = await service.call("beginPasskey", {});
  const { id, rawId, type, response } = await startRegistration({ optionsJSON });
  const { clientDataJSON, attestationObject } = response;
  const made = { clientDataJSON, attestationObject };
  const body = { name, credential: { id, rawId, type, response: made } };
  return service.call("createPasskey", { body });
}
