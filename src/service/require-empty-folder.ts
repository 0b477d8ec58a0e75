import { mkdir, readdir } from "node:fs/promises";
import { StartError } from "../settings/start-error.ts";

/** Creates a folder, or takes one that is there and empty. @throws StartError */
export async function requireEmptyFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const [first] = await readdir(folder);
  if (first === undefined) return;
  throw new StartError(`The folder "${folder}" has to be empty, and contains "${first}"`);
}
