const secretForm = /^[\w-]{43}$/;

/** The secret of a sign-in link, or of what was pasted of one; undefined where it has none. */
export function findLinkSecret(text: string): string | undefined {
  const secret = text.trim().split("#").at(-1) ?? "";
  return secretForm.test(secret) ? secret : undefined;
}
