import { rm } from "node:fs/promises";
import { ServiceError } from "../contract/errors.ts";
import { type ContentMeter, createContentMeter } from "./content-meter.ts";
import { statOrUndefined } from "./file-error.ts";

/** How often an interrupted upload is read again because it goes on elsewhere than at its end. */
export const maxReadings = 3;

/** An interrupted upload as far as it is known without its file. */
export interface KeptUpload {
  readonly meter: ContentMeter;
  /** How often the file was read again since it was begun. */
  readonly readings: number;
}

export function createKeptUpload(): KeptUpload {
  return { meter: createContentMeter(), readings: 0 };
}

/**
 * What is known of an upload that goes on at a byte.
 * @throws ServiceError upload_offset_mismatch
 */
export async function takeKept(
  kept: Map<string, KeptUpload>,
  file: string,
  offset: number,
): Promise<KeptUpload> {
  const keptBytes = (await statOrUndefined(file))?.size ?? 0;
  checkUploadOffset(offset, keptBytes);
  const known = kept.get(file) ?? createKeptUpload();
  if (known.meter.bytes === offset && keptBytes === offset) return known;
  const readings = known.readings + 1;
  if (readings <= maxReadings) return { ...createKeptUpload(), readings };
  kept.delete(file);
  await rm(file, { force: true });
  throw tooManyReadingsError();
}

export function tooManyReadingsError(): ServiceError {
  return uploadOffsetError("The upload was continued too often before its end: only from 0", 0);
}

/** @throws ServiceError upload_offset_mismatch */
export function checkUploadOffset(offset: number, keptBytes: number): void {
  if (offset <= keptBytes) return;
  const reason = `${keptBytes} bytes are kept, so ${keptBytes} or less is allowed`;
  throw uploadOffsetError(`The upload cannot go on at byte ${offset}: ${reason}`, keptBytes);
}

export function uploadOffsetError(message: string, allowedOffset: number): ServiceError {
  const headers = { "upload-offset": String(allowedOffset) };
  return new ServiceError("upload_offset_mismatch", message, { headers });
}
