import { createPrivateKey } from "node:crypto";
import type { GitHubAppOptions } from "../../github-app/open-github-app.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { parseSecret, readCredentialFile } from "./read-credentials.ts";
import type { Settings } from "./settings.ts";

/**
 * The service's GitHub App; undefined where the settings name none.
 * @throws StartError
 */
export async function readGitHubAppOptions(
  settings: Settings,
): Promise<GitHubAppOptions | undefined> {
  const {
    MOS_GITHUB_APP_ID: appId,
    MOS_GITHUB_APP_KEY_FILE: keyFile,
    MOS_GITHUB_API_URL: apiUrl,
    MOS_GITHUB_WEBHOOK_SECRET_FILE: secretFile,
    MOS_PUBLIC_URL: address,
  } = settings;
  if (appId === undefined && keyFile === undefined && secretFile === undefined) return undefined;
  if (appId === undefined || keyFile === undefined) {
    throw new StartError("A GitHub App needs both MOS_GITHUB_APP_ID and MOS_GITHUB_APP_KEY_FILE");
  }
  if (address === undefined) {
    throw new StartError("A GitHub App needs MOS_PUBLIC_URL, where links in check runs lead");
  }
  const key = await readCredentialFile("GitHub App's key", keyFile, createPrivateKey);
  const webhookSecret =
    secretFile === undefined
      ? undefined
      : await readCredentialFile("GitHub App's webhook secret", secretFile, parseSecret);
  const publicUrl = `${address.replace(/\/+$/, "")}/v1`;
  return { appId, apiUrl, key, publicUrl, webhookSecret };
}
