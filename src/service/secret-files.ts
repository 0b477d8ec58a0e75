import type { Settings } from "./settings.ts";

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
