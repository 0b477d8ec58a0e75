import { ServiceError } from "../contract/errors.ts";
import {
  type CreatedCredential,
  passkeyCreation,
  passkeyRequest,
  type UsedCredential,
} from "../contract/people/passkey.ts";
import type { SpentIdentity } from "../records/people/identity-records.ts";
import type { Credential } from "../records/people/passkey-records.ts";
import { createChallenge, passkeyMs, readChallenge } from "./passkey-challenge.ts";

/** Whom passkeys are for: browsers use them at this origin alone. */
export interface RelyingParty {
  /** Domain of the service. */
  readonly id: string;
  readonly origin: string;
}

interface PasskeyContext {
  readonly party: RelyingParty;
  /** Signs challenges. */
  readonly key: Buffer;
  readonly now: Date;
}

interface PasskeyOwner {
  readonly personId: string;
  readonly name: string;
  /** Ids of credentials that the person has. */
  readonly credentialIds: readonly string[];
}

const signInPurpose = "sign-in";
/** A fifth of the service's modules, which many services never use. */
export const loadPasskeyLibrary = () => import("@simplewebauthn/server");

/** What a browser needs to create a passkey of a person. */
export async function passkeyCreationOptions(
  { party, key, now }: PasskeyContext,
  { personId, name, credentialIds }: PasskeyOwner,
) {
  const { generateRegistrationOptions } = await loadPasskeyLibrary();
  const options = await generateRegistrationOptions({
    rpName: "Model Optimization",
    rpID: party.id,
    userName: name,
    userDisplayName: name,
    userID: new Uint8Array(Buffer.from(personId)),
    challenge: createChallenge({ key, now, purpose: personId }),
    timeout: passkeyMs,
    excludeCredentials: credentialIds.map((id) => ({ id })),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
  });
  return passkeyCreation.parse(options);
}

/** What a browser needs to sign somebody in, whose name nobody asks for. */
export async function passkeyRequestOptions({ party, key, now }: PasskeyContext) {
  const { generateAuthenticationOptions } = await loadPasskeyLibrary();
  const options = await generateAuthenticationOptions({
    rpID: party.id,
    challenge: createChallenge({ key, now, purpose: signInPurpose }),
    timeout: passkeyMs,
    userVerification: "required",
  });
  return passkeyRequest.parse(options);
}

interface Verified<T> {
  readonly credential: T;
  /** To be recorded with what follows from the verification. */
  readonly challenge: SpentIdentity;
}

/** @throws ServiceError passkey_refused */
export async function verifyCreatedPasskey(
  context: PasskeyContext,
  personId: string,
  created: CreatedCredential,
): Promise<Verified<Credential>> {
  const { verifyRegistrationResponse } = await loadPasskeyLibrary();
  const ceremony = expectCeremony(context, personId);
  try {
    const response = { ...created, clientExtensionResults: {} };
    const answer = await verifyRegistrationResponse({ response, ...ceremony.expected });
    if (!answer.verified) throw new Error("The credential's signature is wrong");
    const { id, publicKey, counter } = answer.registrationInfo.credential;
    return { credential: { id, publicKey, counter }, challenge: ceremony.challenge() };
  } catch (cause) {
    throw new ServiceError("passkey_refused", "The browser's passkey does not fit", { cause });
  }
}

/** @throws ServiceError sign_in_refused */
export async function verifyUsedPasskey(
  context: PasskeyContext,
  credential: Credential,
  used: UsedCredential,
): Promise<Verified<Pick<Credential, "counter">>> {
  const { verifyAuthenticationResponse } = await loadPasskeyLibrary();
  const ceremony = expectCeremony(context, signInPurpose);
  try {
    const response = { ...used, clientExtensionResults: {} };
    const answer = await verifyAuthenticationResponse({
      response,
      credential,
      ...ceremony.expected,
    });
    if (!answer.verified) throw new Error("The passkey's signature is wrong");
    const { newCounter: counter } = answer.authenticationInfo;
    return { credential: { counter }, challenge: ceremony.challenge() };
  } catch (cause) {
    throw passkeyUnknownError(cause);
  }
}

/** The same whether there is no such passkey or it proves nothing. */
export function passkeyUnknownError(cause?: unknown): ServiceError {
  return new ServiceError("sign_in_refused", "The passkey is not known here, or was too slow", {
    cause,
  });
}

/** What a browser's answer has to be for, and the challenge that it had. */
function expectCeremony({ party, key, now }: PasskeyContext, purpose: string) {
  let read: SpentIdentity | undefined;
  const expected = {
    expectedChallenge: (challenge: string) => {
      read = readChallenge(challenge, { key, purpose, now });
      return read !== undefined;
    },
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
  };
  const challenge = (): SpentIdentity => {
    if (read === undefined) throw new Error("The challenge is not the service's");
    return read;
  };
  return { expected, challenge };
}
