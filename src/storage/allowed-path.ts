import { realpath } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ServiceError } from "../contract/errors.ts";
import { systemErrorCode } from "./file-error.ts";

/**
 * The real path of a `file://` source under an allowed folder. A path outside is refused without
 * reading the disk, so that answers do not reveal which files exist, and again after links are
 * resolved.
 */
export async function resolveAllowedPath(
  source: string,
  allowedRoots: readonly string[],
): Promise<string> {
  const named = parseFileUrl(source);
  const roots = await Promise.all(allowedRoots.map(async (root) => realPathOrUndefined(root)));
  const real = roots.filter((root) => root !== undefined);
  if (![...allowedRoots, ...real].some((root) => isPathWithin(root, named))) {
    throw outsideRootsError(source, allowedRoots);
  }
  const file = await realPathOrUndefined(named);
  if (file === undefined) throw new ServiceError("model_not_found", `"${source}" does not exist`);
  if (!real.some((root) => isPathWithin(root, file))) throw outsideRootsError(source, allowedRoots);
  return file;
}

/** Refuses a `file://` source outside the allowed folders, without reading the disk. */
export function checkAllowedPath(source: string, allowedRoots: readonly string[]): void {
  const named = parseFileUrl(source);
  if (allowedRoots.some((root) => isPathWithin(root, named))) return;
  throw outsideRootsError(source, allowedRoots);
}

function isPathWithin(root: string, file: string): boolean {
  const relative = path.relative(root, file);
  return (
    relative !== "" &&
    relative !== ".." &&
    !relative.startsWith(`..${path.sep}`) &&
    !path.isAbsolute(relative)
  );
}

function parseFileUrl(source: string): string {
  const url = URL.parse(source);
  if (url === null || url.host !== "" || /%2f|%5c|%00/i.test(url.pathname)) {
    throw invalidFileUrlError(source);
  }
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw invalidFileUrlError(source, cause);
  }
}

function invalidFileUrlError(source: string, cause?: unknown): ServiceError {
  const message = `"${source}" does not name a file on this machine`;
  return new ServiceError("model_source_refused", message, { cause });
}

async function realPathOrUndefined(file: string): Promise<string | undefined> {
  try {
    return await realpath(file);
  } catch (error) {
    const absent = ["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"];
    if (absent.includes(systemErrorCode(error))) return undefined;
    throw error;
  }
}

function outsideRootsError(source: string, allowedRoots: readonly string[]): ServiceError {
  const allowed =
    allowedRoots.length === 0
      ? "this service allows no file:// models"
      : allowedRoots.map((root) => `"${root}"`).join(", ");
  const message = `"${source}" lies outside the allowed folders: ${allowed}`;
  return new ServiceError("model_source_refused", message);
}
