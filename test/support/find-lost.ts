import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { blobPath } from "../../src/storage/directory-blob-store.ts";
import { systemErrorCode } from "../../src/storage/file-error.ts";
import type { Acknowledged } from "./submit-until.ts";

/** What a data folder lacks of what its service acknowledged. */
export async function findLost(directory: string, known: Acknowledged): Promise<string[]> {
  const database = new DatabaseSync(join(directory, "service.sqlite"));
  const find = database.prepare("select 1 from jobs where id = ?");
  const findUpload = database.prepare("select 1 from project_blobs where sha256 = ?");
  const lost = known.jobs.filter((id) => find.get(id) === undefined);
  for (const sha256 of known.models) {
    const isWhole = (await hashFile(blobPath(directory, sha256))) === sha256;
    if (!isWhole || findUpload.get(sha256) === undefined) lost.push(sha256);
  }
  database.close();
  return lost;
}

async function hashFile(file: string): Promise<string | undefined> {
  try {
    return createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
