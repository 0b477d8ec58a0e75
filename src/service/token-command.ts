import { mkdir } from "node:fs/promises";
import { parseArgs } from "node:util";
import { z } from "zod";
import { tokenRequest } from "../contract/token.ts";
import { openRecords } from "../records/open-records.ts";
import { defaultProject } from "../records/default-project.ts";
import { StartError } from "../settings/start-error.ts";
import { databasePath } from "./start-service.ts";
import { createToken } from "../auth/create-token.ts";

export const tokenUsage = "token create --name NAME --scopes SCOPE,SCOPE [--expires-days DAYS]";

/** Makes a token in the service's records, whether the service runs or not. */
export async function runTokenCommand(args: readonly string[], directory: string): Promise<string> {
  const { name, scopes, "expires-days": days } = parseOptions(args);
  const parsed = tokenRequest.safeParse({
    name,
    scopes: scopes?.split(","),
    ...(days !== undefined && { expiresInDays: Number(days) }),
  });
  if (!parsed.success)
    throw new StartError(`${z.prettifyError(parsed.error)}\nUsage: ${tokenUsage}`);
  await mkdir(directory, { recursive: true });
  const now = () => new Date();
  const records = await openRecords(databasePath(directory), { now });
  try {
    const created = await createToken(records, {
      ...parsed.data,
      project: defaultProject,
      now: now(),
    });
    return created.token;
  } finally {
    await records.close();
  }
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
