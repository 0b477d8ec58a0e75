import { z } from "zod";
import { tlsFiles } from "../http-server/tls-certificate.ts";
import type { Settings } from "./settings.ts";
import {
  type SourceCredentials,
  sourceCredentials,
} from "../../contract/models/source-credentials.ts";
import { readYamlFile } from "../../settings/read-targets.ts";
import { StartError } from "../../settings/parse-environment.ts";
import type { S3Access } from "../../storage/s3/s3-client.ts";
import { maxContentBytes } from "../../storage/s3/stored-chunks.ts";

/** @throws StartError */
export async function readSourceCredentials({
  MOS_SOURCE_CREDENTIALS_FILE: path,
}: Settings): Promise<SourceCredentials> {
  if (path === undefined) return sourceCredentials.parse({});
  return readYamlFile(sourceCredentials, { title: "Source credentials", path });
}

/** The bucket of models and artifacts. */
export const s3File = z.strictObject({
  bucket: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, {
      error: "must be 3 to 63 lower-case letters, digits, '.' and '-', none of these two at an end",
    })
    .describe("Bucket of models and artifacts."),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .default("https://s3.amazonaws.com")
    .describe("Address of the S3 server, which workers reach too: they read and send files there."),
  region: z.string().min(1).default("us-east-1").describe("Region of the bucket."),
  pathStyle: z
    .boolean()
    .default(true)
    .describe("Whether addresses have the bucket in their path, else in their host."),
  accessKeyId: z.string().min(1).describe("Id of the access key for the bucket."),
  secretAccessKey: z.string().min(1).describe("Its secret."),
});

/**
 * Undefined where the settings name no bucket.
 * @throws StartError
 */
export async function readS3Access({
  MOS_S3_FILE: path,
  MOS_MAX_MODEL_BYTES: maxModelBytes,
}: Settings): Promise<S3Access | undefined> {
  if (path === undefined) return undefined;
  if (maxModelBytes > maxContentBytes) {
    const message = `MOS_MAX_MODEL_BYTES is ${maxModelBytes}; with S3 at most ${maxContentBytes}`;
    throw new StartError(message);
  }
  const { pathStyle, ...access } = await readYamlFile(s3File, { title: "S3 file", path });
  return { ...access, isPathStyle: pathStyle };
}

/** Settings whose files workers must not read. */
const secretSettings = [
  "KUBECONFIG",
  "MOS_FIRST_SIGN_IN_FILE",
  "MOS_GITHUB_APP_FILE",
  "MOS_OIDC_FILE",
  "MOS_S3_FILE",
  "MOS_SOURCE_CREDENTIALS_FILE",
] as const;

/** Files of the settings that workers must not read. */
export function listSecretFiles(
  settings: Readonly<Partial<Pick<Settings, (typeof secretSettings)[number] | "MOS_TLS_DIR">>>,
): string[] {
  const files = secretSettings.flatMap((name) => settings[name] ?? []);
  const { MOS_TLS_DIR: directory } = settings;
  return directory === undefined ? files : [...files, tlsFiles(directory).key];
}
