import { readFile } from "node:fs/promises";
import { StartError } from "../settings/start-error.ts";
import { maxContentBytes } from "../storage/s3/stored-chunks.ts";
import type { S3Access } from "../storage/s3/s3-address.ts";
import type { Settings } from "./settings.ts";

/**
 * The bucket of models and artifacts; undefined where the settings name none.
 * @throws StartError
 */
export async function readS3Access(settings: Settings): Promise<S3Access | undefined> {
  const {
    MOS_S3_BUCKET: bucket,
    MOS_S3_ENDPOINT: endpoint,
    MOS_S3_REGION: region,
    MOS_S3_PATH_STYLE: isPathStyle,
    MOS_S3_ACCESS_KEY_ID: accessKeyId,
    MOS_S3_SECRET_ACCESS_KEY_FILE: secretFile,
    MOS_MAX_MODEL_BYTES: maxModelBytes,
  } = settings;
  if (bucket === undefined) return undefined;
  if (accessKeyId === undefined || secretFile === undefined) {
    const needed = "MOS_S3_ACCESS_KEY_ID and MOS_S3_SECRET_ACCESS_KEY_FILE";
    throw new StartError(`MOS_S3_BUCKET needs ${needed}`);
  }
  if (maxModelBytes > maxContentBytes) {
    const message = `MOS_MAX_MODEL_BYTES is ${maxModelBytes}; with S3 at most ${maxContentBytes}`;
    throw new StartError(message);
  }
  const secretAccessKey = await readSecret(secretFile);
  return { bucket, endpoint, region, isPathStyle, accessKeyId, secretAccessKey };
}

async function readSecret(file: string): Promise<string> {
  try {
    const secret = (await readFile(file, "utf8")).trim();
    if (secret === "") throw new Error("It is empty");
    return secret;
  } catch (cause) {
    const message = `The S3 server's secret "${file}" cannot be used: ${String(cause)}`;
    throw new StartError(message, { cause });
  }
}
