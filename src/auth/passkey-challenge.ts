import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { SpentIdentity } from "../records/people/identity-records.ts";

/** How long a person may take to use a passkey, milliseconds. */
export const passkeyMs = 300_000;
const randomLength = 16;
const timeLength = 8;
const issuer = "passkey";

interface ChallengeUse {
  readonly key: Buffer;
  /** What the challenge is for: signing in, or a passkey of a person. */
  readonly purpose: string;
  readonly now: Date;
}

/** A challenge that shows by itself that the service made it, for what and until when. */
export function createChallenge({ key, purpose, now }: ChallengeUse): Uint8Array<ArrayBuffer> {
  const time = Buffer.alloc(timeLength);
  time.writeBigUInt64BE(BigInt(now.getTime() + passkeyMs));
  const content = Buffer.concat([randomBytes(randomLength), time]);
  return new Uint8Array(Buffer.concat([content, signChallenge(content, { key, purpose })]));
}

/**
 * What to record of a challenge, so that it counts once; undefined where the service did not make
 * it for the purpose, or too long ago.
 */
export function readChallenge(
  challenge: string,
  { key, purpose, now }: ChallengeUse,
): SpentIdentity | undefined {
  const bytes = Buffer.from(challenge, "base64url");
  const content = bytes.subarray(0, randomLength + timeLength);
  const signature = bytes.subarray(randomLength + timeLength);
  const expected = signChallenge(content, { key, purpose });
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) {
    return undefined;
  }
  const until = Number(content.readBigUInt64BE(randomLength));
  return until > now.getTime() ? { issuer, jti: content.toString("base64url"), until } : undefined;
}

function signChallenge(
  content: Uint8Array,
  { key, purpose }: Pick<ChallengeUse, "key" | "purpose">,
): Buffer {
  return createHmac("sha256", key).update(purpose).update("\n").update(content).digest();
}
