import { mkdir } from "node:fs/promises";
import { parseArgs } from "node:util";
import { z } from "zod";
import { createToken } from "../auth/create-token.ts";
import { type TokenRequest, tokenRequest } from "../contract/token.ts";
import { defaultProject } from "../records/default-project.ts";
import { openRecords } from "../records/open-records.ts";
import { StartError } from "../settings/start-error.ts";
import { databasePath } from "./database-path.ts";

export const tokenUsage =
  "token create --name NAME --scopes SCOPE,SCOPE [--expires-days DAYS|never]";

/** Creates a token in the service's records, whether the service runs or not. */
export async function runTokenCommand(args: readonly string[], directory: string): Promise<string> {
  const request = parseTokenRequest(args);
  await mkdir(directory, { recursive: true });
  const now = () => new Date();
  const records = await openRecords(databasePath(directory), { now });
  try {
    const fields = { ...request, project: defaultProject, now: now() };
    const { id, token } = await createToken(records, fields);
    const command = { action: "createToken", tokenId: null, tokenName: "token command" };
    await records.audit.add(defaultProject, { ...command, subject: id });
    return token;
  } finally {
    await records.close();
  }
}

function parseTokenRequest(args: readonly string[]): TokenRequest {
  const { name, scopes, "expires-days": days } = parseOptions(args);
  const expiresInDays = days === undefined ? undefined : days === "never" ? null : Number(days);
  const parsed = tokenRequest.safeParse({ name, scopes: scopes?.split(","), expiresInDays });
  if (parsed.success) return parsed.data;
  throw new StartError(`${z.prettifyError(parsed.error)}\nUsage: ${tokenUsage}`);
}

function parseOptions(args: readonly string[]) {
  const options = {
    name: { type: "string" },
    scopes: { type: "string" },
    "expires-days": { type: "string" },
  } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (positionals.join(" ") === "create") return values;
  } catch (cause) {
    throw new StartError(`${String(cause)}\nUsage: ${tokenUsage}`, { cause });
  }
  throw new StartError(`Usage: ${tokenUsage}`);
}
