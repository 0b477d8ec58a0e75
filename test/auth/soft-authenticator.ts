import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { isoCBOR } from "@simplewebauthn/server/helpers";

interface Ceremony {
  readonly challenge: string;
  readonly origin: string;
  readonly rpId: string;
}

/** Bits of the flags in what an authenticator signs. */
const userPresent = 0x01;
const userVerified = 0x04;
const hasCredential = 0x40;

/** An authenticator with one passkey, which signs what it is asked to. */
export function createSoftAuthenticator() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const id = randomBytes(16).toString("base64url");
  const shared = { id, rawId: id, type: "public-key" as const };
  const coseKey = new Map<number, number | Uint8Array>([
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, fromBase64url(x)],
    [-3, fromBase64url(y)],
  ]);
  const authenticator = {
    /** How often the passkey was used; 0 for one that does not count. */
    counter: 0,
    /** Whether it has checked who uses it, as by a fingerprint. */
    isVerifying: true,
    create(ceremony: Ceremony) {
      const attested = Buffer.concat([
        Buffer.alloc(16),
        Buffer.from([0, 16]),
        fromBase64url(id),
        isoCBOR.encode(coseKey),
      ]);
      const authData = new Uint8Array(
        Buffer.concat([authenticatorData(ceremony, hasCredential, authenticator), attested]),
      );
      const statement = new Map<string, unknown>([
        ["fmt", "none"],
        ["attStmt", new Map()],
        ["authData", authData],
      ]);
      // The encoder's own type is not exported.
      const attestation = isoCBOR.encode(statement as Parameters<typeof isoCBOR.encode>[0]);
      const clientData = encodeClientData("webauthn.create", ceremony);
      const attestationObject = Buffer.from(attestation).toString("base64url");
      const response = { clientDataJSON: clientData.toString("base64url"), attestationObject };
      return { ...shared, response };
    },
    use(ceremony: Ceremony) {
      const clientData = encodeClientData("webauthn.get", ceremony);
      const data = authenticatorData(ceremony, 0, authenticator);
      const signed = Buffer.concat([data, createHash("sha256").update(clientData).digest()]);
      const response = {
        clientDataJSON: clientData.toString("base64url"),
        authenticatorData: data.toString("base64url"),
        signature: sign("sha256", signed, privateKey).toString("base64url"),
      };
      return { ...shared, response };
    },
  };
  return authenticator;
}

function authenticatorData(
  { rpId }: Ceremony,
  added: number,
  { counter, isVerifying }: { readonly counter: number; readonly isVerifying: boolean },
): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32BE(counter);
  const flags = userPresent + (isVerifying ? userVerified : 0) + added;
  return Buffer.concat([createHash("sha256").update(rpId).digest(), Buffer.from([flags]), count]);
}

function encodeClientData(type: string, { challenge, origin }: Ceremony): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
}

function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text, "base64url"));
}
