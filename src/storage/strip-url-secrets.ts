import { replaceHiddenCharacters } from "../contract/text/hidden-characters.ts";

/** An address in one line, without user information and query: secrets are in both. */
export function stripUrlSecrets(address: string | URL): string {
  return replaceHiddenCharacters(String(address))
    .replace(/[?#].*$/s, "")
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/\\]*@/i, "$1");
}
