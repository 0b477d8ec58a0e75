import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
import { type TrustPolicy, trustPolicy } from "../contract/trust-policy.ts";
import { StartError } from "../settings/start-error.ts";

/** @throws StartError with all that is wrong with the file */
export async function readTrustPolicy(path: string): Promise<TrustPolicy> {
  try {
    return trustPolicy.parse(parse(await readFile(path, "utf8")));
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    throw new StartError(`Trust policy "${path}" cannot be used: ${reason}`, { cause });
  }
}
