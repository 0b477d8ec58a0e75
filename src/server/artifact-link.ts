import { createHmac, timingSafeEqual } from "node:crypto";
import type { LinkedArtifact } from "../contract/routes/artifact-routes.ts";

/** The path and the query of a link, below the base address with `/v1`. */
export function signArtifactLink(key: Buffer, linked: LinkedArtifact): string {
  const { id, name, expires, sha256 } = linked;
  const signature = computeSignature(key, linked).toString("base64url");
  const query = new URLSearchParams({ expires: String(expires), sha256, signature });
  return `/links/${id}/${name}?${query.toString()}`;
}

export function isSignedLink(key: Buffer, linked: LinkedArtifact, signature: string): boolean {
  const expected = computeSignature(key, linked);
  const given = Buffer.from(signature, "base64url");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function computeSignature(key: Buffer, { id, name, expires, sha256 }: LinkedArtifact): Buffer {
  const text = ["artifact", id, name, sha256, expires].join("\n");
  return createHmac("sha256", key).update(text).digest();
}
