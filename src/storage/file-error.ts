import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { ServiceError } from "../contract/errors.ts";

/** The system's code of an error (`ENOENT`, `ECONNRESET`), or the empty string. */
export function systemErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : "";
}

/** Makes a full disk or exhausted quota `storage_full`; returns other errors unchanged. */
export function storageError(error: unknown): unknown {
  const isFull = ["ENOSPC", "EDQUOT"].includes(systemErrorCode(error));
  return isFull ? new ServiceError("storage_full", "The disk is full", { cause: error }) : error;
}

export async function statOrUndefined(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
