import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { ServiceError } from "../contract/errors.ts";

/** The system's code of an error (`ENOENT`, `ECONNRESET`), or the empty string. */
export function systemErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : "";
}

/**
 * Makes a full disk or exhausted quota `storage_full`, and a disk that fails `unavailable`; returns
 * other errors unchanged.
 */
export function storageError(error: unknown): unknown {
  switch (systemErrorCode(error)) {
    case "ENOSPC":
    case "EDQUOT":
      return new ServiceError("storage_full", "The disk is full", { cause: error });
    case "EIO":
      return new ServiceError("unavailable", "The disk fails (EIO)", { cause: error });
  }
  return error;
}

/** Whether the same may succeed later: the disk or bucket is full, fails or does not answer. */
export function isStorageFailure(error: unknown): boolean {
  const failure = storageError(error);
  return failure instanceof ServiceError && ["storage_full", "unavailable"].includes(failure.code);
}

export function isFullDisk(error: unknown): boolean {
  const failure = storageError(error);
  return failure instanceof ServiceError && failure.code === "storage_full";
}

export async function statOrUndefined(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemErrorCode(error))) return undefined;
    throw error;
  }
}
