import { readFile } from "node:fs/promises";
import { offerSignIn } from "../auth/sign-in.ts";
import { signInRequest } from "../contract/people/session.ts";
import type { Records } from "../records/open-records.ts";
import { StartError } from "../settings/start-error.ts";

/**
 * Lets the first administrator sign in by the file's secret, until somebody who has a
 * role has signed in.
 * @throws StartError where the file has no such secret
 */
export async function offerFirstSignIn(
  file: string | undefined,
  records: Pick<Records, "sessions">,
  now: Date,
): Promise<void> {
  if (file === undefined) return;
  const secret = await readSignInSecret(file);
  await offerSignIn(records, { secret, now });
}

async function readSignInSecret(file: string): Promise<string> {
  try {
    const secret = (await readFile(file, "utf8")).trim();
    if (signInRequest.shape.secret.safeParse(secret).success) return secret;
    throw new Error("It must be 43 letters, digits, - or _");
  } catch (cause) {
    const message = `The secret of the first sign-in "${file}" cannot be used: ${String(cause)}`;
    throw new StartError(message, { cause });
  }
}
