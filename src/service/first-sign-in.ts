import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createToken } from "../auth/create-token.ts";
import { offerSignIn } from "../auth/sign-in.ts";
import { signInRequest } from "../contract/people/session.ts";
import { defaultProject } from "../contract/project.ts";
import type { Records } from "../records/open-records.ts";
import { StartError } from "../settings/parse-environment.ts";

/** A token with every scope; undefined where the service has a token already. */
export async function createFirstToken(
  records: Pick<Records, "tokens">,
  now: Date,
): Promise<string | undefined> {
  if ((await records.tokens.list(defaultProject)).length > 0) return undefined;
  const { token } = await createToken(records, {
    name: "first",
    scopes: ["admin"],
    project: defaultProject,
    now,
  });
  return token;
}

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
  await offerSignIn(records, secret, now);
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

/**
 * Shows the first token to a person at a terminal. Other output may be collected where many read
 * it, so that it names a file that only the owner can read.
 */
export async function reportFirstToken(
  token: string,
  output: { readonly isTTY?: boolean; write(text: string): unknown },
  directory: string,
): Promise<void> {
  if (output.isTTY === true) {
    output.write(`Access token with every scope, shown this once: ${token}\n`);
    return;
  }
  const file = resolve(join(directory, "first-token"));
  await writeFile(file, `${token}\n`, { mode: 0o600 });
  output.write(`Access token with every scope, in a file to be deleted: ${file}\n`);
}
