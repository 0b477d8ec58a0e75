import { createHash } from "node:crypto";
import { readPieces } from "../model-files/read-pieces.ts";

/** SHA-256 of a file's content, in hexadecimal. */
export async function hashFile(file: string, signal: AbortSignal | undefined): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of readPieces(file, signal)) hash.update(piece);
  return hash.digest("hex");
}
