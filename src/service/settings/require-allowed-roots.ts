import { access } from "node:fs/promises";
import { StartError } from "../../settings/parse-environment.ts";
import { systemErrorCode } from "../../storage/file-error.ts";

/** @throws StartError that names every folder whose files cannot be opened */
export async function requireAllowedRoots(roots: readonly string[]): Promise<void> {
  const problems = (await Promise.all(roots.map(findProblem))).filter((text) => text !== undefined);
  if (problems.length === 0) return;
  throw new StartError(["The settings are invalid", ...problems].join("\n"));
}

async function findProblem(root: string): Promise<string | undefined> {
  try {
    // The dot is found in nothing but a folder whose files the process may open.
    await access(`${root}/.`);
    return undefined;
  } catch (error) {
    const code = systemErrorCode(error);
    return `MOS_ALLOWED_ROOTS has "${root}", which must be a folder that can be read (${code})`;
  }
}
