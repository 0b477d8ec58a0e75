import { z } from "zod";
import { passkeyId } from "../id.ts";
import {
  newPasskey,
  passkey,
  passkeyCreation,
  passkeyRequest,
  passkeySignIn,
  passkeyUpdate,
} from "../people/passkey.ts";
import type { Route } from "./route.ts";
import { session } from "../people/session.ts";

/** Of a credential with the largest statement of its authenticator. */
const credentialBytes = 32_768;

export const passkeyRoutes = {
  listPasskeys: {
    method: "GET",
    path: "/passkeys",
    summary: "Passkeys of the person who is signed in; none for an access token",
    action: "manageOwnSessions",
    replies: {
      200: { json: z.object({ passkeys: z.array(passkey) }).meta({ id: "PasskeyList" }) },
    },
    errors: [],
  },
  beginPasskey: {
    method: "POST",
    path: "/passkeys/options",
    summary: "What a browser needs to create a passkey",
    action: "manageOwnSessions",
    replies: { 200: { json: passkeyCreation } },
    errors: ["passkey_refused"],
  },
  createPasskey: {
    method: "POST",
    path: "/passkeys",
    summary: "Register a passkey of the person who is signed in",
    action: "manageOwnSessions",
    body: newPasskey,
    bodyBytes: credentialBytes,
    audited: true,
    replies: { 201: { json: passkey } },
    errors: ["unsupported_media_type", "payload_too_large", "passkey_refused"],
  },
  renamePasskey: {
    method: "PUT",
    path: "/passkeys/{id}",
    summary: "Rename a passkey",
    action: "manageOwnSessions",
    params: z.object({ id: passkeyId }),
    body: passkeyUpdate,
    bodyBytes: 1024,
    audited: true,
    replies: { 200: { json: passkey } },
    errors: ["unsupported_media_type", "payload_too_large", "not_found"],
  },
  deletePasskey: {
    method: "DELETE",
    path: "/passkeys/{id}",
    summary: "Delete a passkey, which signs nobody in any more",
    action: "manageOwnSessions",
    params: z.object({ id: passkeyId }),
    audited: true,
    replies: { 204: { empty: true } },
    errors: ["not_found"],
  },
  beginPasskeySignIn: {
    method: "POST",
    path: "/sessions/passkey/options",
    summary: "What a browser needs to sign in by a passkey",
    action: "signIn",
    open: true,
    replies: { 200: { json: passkeyRequest } },
    errors: ["passkey_refused"],
  },
  signInByPasskey: {
    method: "POST",
    path: "/sessions/passkey",
    summary: "Sign in by a passkey; the answer sets the session's cookie",
    action: "signIn",
    open: true,
    body: passkeySignIn,
    bodyBytes: credentialBytes,
    replies: { 201: { json: session, headers: ["set-cookie"] } },
    errors: ["unsupported_media_type", "payload_too_large", "sign_in_refused", "passkey_refused"],
  },
} as const satisfies Record<string, Route>;
