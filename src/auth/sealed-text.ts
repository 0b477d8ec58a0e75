import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts a text with a secret, which must be random and not a password. */
export function seal(text: string, secret: string | Buffer): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, deriveSealKey(secret), nonce);
  const sealed = [nonce, cipher.update(text, "utf8"), cipher.final()];
  return Buffer.concat([...sealed, cipher.getAuthTag()]).toString("base64");
}

/** @throws Error where the text was sealed with another secret or changed */
export function unseal(sealed: string, secret: string | Buffer): string {
  const bytes = Buffer.from(sealed, "base64");
  const decipher = createDecipheriv(
    algorithm,
    deriveSealKey(secret),
    bytes.subarray(0, nonceBytes),
  );
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  const text = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
  return Buffer.concat([text, decipher.final()]).toString("utf8");
}

function deriveSealKey(secret: string | Buffer): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "model-optimization-service answers", 32));
}
