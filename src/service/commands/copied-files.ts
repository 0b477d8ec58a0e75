import { mkdir, readdir } from "node:fs/promises";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { errorMessage } from "../../log/error-message.ts";
import { nameArtifacts } from "../../records/blobs/list-referenced-blobs.ts";
import { StartError } from "../../settings/parse-environment.ts";

/** What a backup or a restoration copied. */
interface CopiedFiles {
  readonly files: number;
  readonly bytes: number;
  /** Hashes of files that records name and that are not there. */
  readonly missing: readonly string[];
}

/** Copies files one after the other; the copy's size is undefined if there is no file. */
export async function copyFiles(
  hashes: readonly string[],
  copy: (sha256: string) => Promise<number | undefined>,
): Promise<CopiedFiles> {
  const missing: string[] = [];
  let bytes = 0;
  for (const sha256 of hashes) {
    const size = await copy(sha256);
    if (size === undefined) missing.push(sha256);
    bytes += size ?? 0;
  }
  return { files: hashes.length - missing.length, bytes, missing };
}

/** `database` is where the jobs are looked up that have the missing files. */
export function describeCopies(copied: CopiedFiles, folder: string, database: string): string {
  const { files, bytes } = copied;
  const summary = `Records and ${formatCount(files, "file")} (${formatBytes(bytes)}) are in "${folder}"`;
  return [summary, ...describeMissing(copied, database)].join("\n");
}

export function describeMissing(
  { missing }: Pick<CopiedFiles, "missing">,
  database: string,
): string[] {
  if (missing.length === 0) return [];
  const names = nameArtifacts(database, missing);
  return missing.map((sha256) => [`Missing: ${sha256}`, ...(names.get(sha256) ?? [])].join(", "));
}

/** A volume has it at its root. */
const ownedByFileSystem: ReadonlySet<string> = new Set(["lost+found"]);

/** Creates a folder, or takes one that is there. @throws StartError */
export async function requireFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new StartError(`The folder "${folder}" cannot be used: ${errorMessage(cause)}`, {
      cause,
    });
  }
}

/** Creates a folder, or takes one that is there and empty. @throws StartError */
export async function requireEmptyFolder(folder: string): Promise<void> {
  await requireFolder(folder);
  const [first] = (await readdir(folder)).filter((name) => !ownedByFileSystem.has(name));
  if (first === undefined) return;
  throw new StartError(`The folder "${folder}" has to be empty, and contains "${first}"`);
}
