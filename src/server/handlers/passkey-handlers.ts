import type { Caller } from "../../auth/authenticate.ts";
import {
  passkeyCreationOptions,
  passkeyRequestOptions,
  passkeyUnknownError,
  verifyCreatedPasskey,
  verifyUsedPasskey,
} from "../../auth/passkeys.ts";
import { findRelyingParty } from "../../auth/relying-party.ts";
import { requireSameOrigin } from "../../auth/session-cookie.ts";
import { beginPasskeySession } from "../../auth/sign-in.ts";
import { ServiceError } from "../../contract/errors.ts";
import { beganSession, browserVisit } from "./session-handlers.ts";
import { notFoundError } from "../http/problem-response.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import type { ServerContext } from "../http/server-context.ts";

type PasskeyHandlers = Pick<
  RouteHandlers,
  | "listPasskeys"
  | "beginPasskey"
  | "createPasskey"
  | "renamePasskey"
  | "deletePasskey"
  | "beginPasskeySignIn"
  | "signInByPasskey"
>;

const keyName = "passkeys";

export const passkeyHandlers: PasskeyHandlers = {
  async listPasskeys({ records }, { caller: { session } }) {
    const passkeys = session ? await records.passkeys.list(session.personId) : [];
    return { status: 200, json: { passkeys } };
  },

  async beginPasskey(context, { caller, request }) {
    const personId = requirePerson(caller);
    const credentialIds = await context.records.passkeys.listCredentialIds(personId);
    const owner = { personId, name: caller.name, credentialIds };
    const options = passkeyCreationOptions(await passkeyContext(context, request), owner);
    return { status: 200, json: await options };
  },

  async createPasskey(context, { caller, body, audit, request }) {
    const personId = requirePerson(caller);
    const passkeys = await passkeyContext(context, request);
    const verified = await verifyCreatedPasskey(passkeys, personId, body.credential);
    const newPasskey = { personId, name: body.name, ...verified };
    return { status: 201, json: await context.records.passkeys.create(newPasskey, audit) };
  },

  async renamePasskey({ records }, { caller: { session }, params: { id }, body: { name }, audit }) {
    const own = session && { personId: session.personId, id, name };
    const renamed = own ? await records.passkeys.rename(own, audit) : undefined;
    if (renamed === undefined) throw notFoundError("passkey", id);
    return { status: 200, json: renamed };
  },

  async deletePasskey({ records }, { caller: { session }, params: { id }, audit }) {
    const own = session && { personId: session.personId, id };
    const isDeleted = own !== null && (await records.passkeys.delete(own, audit));
    if (!isDeleted) throw notFoundError("passkey", id);
    return { status: 204 };
  },

  async beginPasskeySignIn(context, { request }) {
    requireSameOrigin(request);
    return {
      status: 200,
      json: await passkeyRequestOptions(await passkeyContext(context, request)),
    };
  },

  async signInByPasskey(context, { body: { credential }, request }) {
    requireSameOrigin(request);
    const { records } = context;
    const passkeys = await passkeyContext(context, request);
    const stored = await records.passkeys.findCredential(credential.id);
    if (stored === undefined) throw passkeyUnknownError();
    const { credential: used, challenge } = await verifyUsedPasskey(passkeys, stored, credential);
    const use = { id: stored.id, counter: used.counter, challenge };
    const begun = await beginPasskeySession(records, use, browserVisit(context, request));
    return beganSession(context, request, begun);
  },
};

/** @throws ServiceError passkey_refused */
async function passkeyContext(context: ServerContext, request: Request) {
  const party = findRelyingParty(context, request);
  if (party === undefined) {
    const message = "Passkeys need https://… in MOS_PUBLIC_URL, or http://localhost";
    throw new ServiceError("passkey_refused", message);
  }
  return { party, key: await context.records.keys.read(keyName), now: context.now() };
}

/** @throws ServiceError passkey_refused for an access token */
function requirePerson({ session }: Caller): string {
  if (session !== null) return session.personId;
  throw new ServiceError("passkey_refused", "A passkey is of a person who is signed in");
}
