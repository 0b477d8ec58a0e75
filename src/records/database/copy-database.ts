import { open } from "node:fs/promises";
import { backup, DatabaseSync } from "node:sqlite";

/** All pages are copied in one step: a step that follows a write would start over. */
const pagesPerStep = 2 ** 31 - 1;

/**
 * Copies a database as it is at one moment, also while others write to it. The copy must not exist
 * and is readable by its owner only.
 */
export async function copyDatabase(path: string, copy: string): Promise<void> {
  await (await open(copy, "wx", 0o600)).close();
  const source = new DatabaseSync(path);
  try {
    await backup(source, copy, { rate: pagesPerStep });
  } finally {
    source.close();
  }
  await using file = await open(copy, "r+");
  await file.sync();
}
