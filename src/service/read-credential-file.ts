import { readFile } from "node:fs/promises";
import { StartError } from "../settings/start-error.ts";

/**
 * What a file of credentials holds, as `parse` reads it; `what` names it in the error.
 * @throws StartError
 */
export async function readCredentialFile<T>(
  what: string,
  file: string,
  parse: (content: string) => T,
): Promise<T> {
  try {
    return parse(await readFile(file, "utf8"));
  } catch (cause) {
    throw new StartError(`The ${what} "${file}" cannot be used: ${String(cause)}`, { cause });
  }
}

/** @throws Error for an empty secret, which anyone has */
export function parseSecret(content: string): string {
  const secret = content.trim();
  if (secret === "") throw new Error("It is empty");
  return secret;
}
