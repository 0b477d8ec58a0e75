import type { Store } from "../database/store.ts";

const hashesPerQuery = 200;

/** Of the hashes those that are not uploads of the project, in their order. */
export async function findMissingUploads(
  db: Store["db"],
  project: string,
  hashes: readonly string[],
): Promise<string[]> {
  const found = new Set<string>();
  for (let start = 0; start < hashes.length; start += hashesPerQuery) {
    const rows = await db
      .selectFrom("project_blobs")
      .select("sha256")
      .where("project", "=", project)
      .where("sha256", "in", hashes.slice(start, start + hashesPerQuery))
      .execute();
    for (const { sha256 } of rows) found.add(sha256);
  }
  return hashes.filter((hash) => !found.has(hash));
}
