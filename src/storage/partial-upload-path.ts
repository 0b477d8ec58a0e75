import { createHash } from "node:crypto";
import path from "node:path";
import type { Upload } from "./blob-store.ts";

const suffix = ".partial";

/** Whether a file of the folder is an upload that can be resumed. */
export function isPartialUpload(name: string): boolean {
  return name.endsWith(suffix);
}

/** What names of a project's uploads begin with. */
export function projectPrefix(project: string): string {
  return `${encodeURIComponent(project)}.`;
}

export function partialUploadPath(incoming: string, upload: Upload): string {
  return path.join(incoming, partialUploadName(upload));
}

/** Owners are hashed: their names may be longer than those of files. */
export function partialUploadName({ sha256, project, owner }: Upload): string {
  const ownerHash = createHash("sha256").update(owner).digest("hex").slice(0, 32);
  return `${projectPrefix(project)}${ownerHash}.${sha256}${suffix}`;
}

/** Whose an upload is, as its name says it. */
export function partialUploadOwner(name: string): string {
  const owner = name.split(".").at(-3);
  if (owner === undefined) throw new Error(`"${name}" is not the name of an upload`);
  return owner;
}

/** Whether a file of the folder is an upload of the project that can be resumed. */
export function isProjectUpload(project: string, name: string): boolean {
  return isPartialUpload(name) && name.startsWith(projectPrefix(project));
}
