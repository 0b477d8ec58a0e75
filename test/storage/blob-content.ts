import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";

export function sha256Of(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** As a socket gives it. */
export async function* stream(content: Uint8Array) {
  for (let at = 0; at < content.length; at += 65_536) yield content.subarray(at, at + 65_536);
}

/** Its connection is lost behind the content. */
export async function* cutStream(content: Uint8Array) {
  yield* stream(content);
  throw new Error("Connection lost");
}

export async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}
