import { open } from "node:fs/promises";

/** Makes the names of what a folder contains survive a power failure. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, "r");
  await handle.sync();
}
