import { readFile } from "node:fs/promises";
import type { Settings } from "./settings.ts";
import {
  type SourceCredentials,
  sourceCredentials,
} from "../../contract/models/source-credentials.ts";
import { readYamlFile } from "../../settings/read-targets.ts";
import { StartError } from "../../settings/parse-environment.ts";
import type { S3Access } from "../../storage/s3/s3-client.ts";
import { maxContentBytes } from "../../storage/s3/stored-chunks.ts";

/**
 * What a file of credentials holds, as `parse` reads it; `what` names it in the error.
 * @throws StartError
 */
export async function readCredentialFile<T>(
  what: string,
  file: string,
  parse: (content: string) => T,
): Promise<T> {
  try {
    return parse(await readFile(file, "utf8"));
  } catch (cause) {
    throw new StartError(`The ${what} "${file}" cannot be used: ${String(cause)}`, { cause });
  }
}

/** @throws Error for an empty secret, which anyone has */
export function parseSecret(content: string): string {
  const secret = content.trim();
  if (secret === "") throw new Error("It is empty");
  return secret;
}

/** @throws StartError */
export async function readSourceCredentials({
  MOS_SOURCE_CREDENTIALS_FILE: path,
}: Settings): Promise<SourceCredentials> {
  if (path === undefined) return sourceCredentials.parse({});
  return readYamlFile(sourceCredentials, { title: "Source credentials", path });
}

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

const secretFileSettings = [
  "MOS_FIRST_SIGN_IN_FILE",
  "MOS_GITHUB_APP_KEY_FILE",
  "MOS_GITHUB_WEBHOOK_SECRET_FILE",
  "MOS_KUBECONFIG",
  "MOS_OIDC_CLIENT_SECRET_FILE",
  "MOS_S3_SECRET_ACCESS_KEY_FILE",
  "MOS_SOURCE_CREDENTIALS_FILE",
  "MOS_TLS_KEY_FILE",
] as const;

/** Files of the settings that workers must not read. */
export function listSecretFiles(
  settings: Readonly<Partial<Pick<Settings, (typeof secretFileSettings)[number]>>>,
): string[] {
  return secretFileSettings.flatMap((name) => settings[name] ?? []);
}
