import { createHash } from "node:crypto";

/** The tag of a JSON answer. */
export function computeETag(json: unknown): string {
  return `"${createHash("sha256").update(JSON.stringify(json)).digest("base64url")}"`;
}

/** Whether an If-None-Match header names the tag. */
export function isETagMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
