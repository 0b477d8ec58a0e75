import { z } from "zod";
import { passkeyId } from "../id.ts";

/** WebAuthn says bytes so. Requests have the fields below alone of what browsers say. */
const bytes = z
  .string()
  .max(8192)
  .regex(/^[\w-]+$/, { error: "must be base64url" });
const credentialType = z.literal("public-key");

export const passkeyName = z.string().trim().min(1).max(100);

/** A credential of a person's device, in place of a password. */
export const passkey = z
  .object({
    id: passkeyId,
    name: z.string().describe("Name for its owner, such as that of the device."),
    createdAt: z.iso.datetime(),
    lastUsedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: "Passkey" });
export type Passkey = z.infer<typeof passkey>;

/** What a browser needs to create a passkey, by `navigator.credentials.create`. */
export const passkeyCreation = z
  .object({
    rp: z.object({ id: z.string(), name: z.string() }),
    user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
    challenge: z.string().describe("Counts once, and for five minutes."),
    pubKeyCredParams: z.array(z.object({ alg: z.int(), type: credentialType })),
    timeout: z.int(),
    excludeCredentials: z.array(z.object({ id: z.string(), type: credentialType })),
    authenticatorSelection: z.object({
      residentKey: z.literal("required"),
      requireResidentKey: z.literal(true),
      userVerification: z.literal("required"),
    }),
  })
  .meta({ id: "PasskeyCreation" });

/** What a browser needs to use a passkey, by `navigator.credentials.get`. */
export const passkeyRequest = z
  .object({
    rpId: z.string(),
    challenge: z.string().describe("Counts once, and for five minutes."),
    timeout: z.int(),
    userVerification: z.literal("required"),
  })
  .meta({ id: "PasskeyRequest" });

/** Body of `POST /passkeys`. */
export const newPasskey = z
  .strictObject({
    name: passkeyName,
    credential: z.strictObject({
      id: bytes,
      rawId: bytes,
      type: credentialType,
      response: z.strictObject({ clientDataJSON: bytes, attestationObject: bytes }),
    }),
  })
  .meta({ id: "NewPasskey" });
export type CreatedCredential = z.infer<typeof newPasskey>["credential"];

/** Body of `PUT /passkeys/{id}`. */
export const passkeyUpdate = z.strictObject({ name: passkeyName }).meta({ id: "PasskeyUpdate" });

/** Body of `POST /sessions/passkey`. */
export const passkeySignIn = z
  .strictObject({
    credential: z.strictObject({
      id: bytes,
      rawId: bytes,
      type: credentialType,
      response: z.strictObject({
        clientDataJSON: bytes,
        authenticatorData: bytes,
        signature: bytes,
      }),
    }),
  })
  .meta({ id: "PasskeySignIn" });
export type UsedCredential = z.infer<typeof passkeySignIn>["credential"];
