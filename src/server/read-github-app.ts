import { createPrivateKey } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { AppCredentials } from "../github-app/installations.ts";
import type { Settings } from "./settings.ts";
import { StartError } from "./start-error.ts";

/**
 * The service's GitHub App; undefined where the settings name none.
 * @throws StartError
 */
export async function readGitHubApp(settings: Settings): Promise<AppCredentials | undefined> {
  const { MOS_GITHUB_APP_ID: appId, MOS_GITHUB_APP_KEY_FILE: keyFile, MOS_GITHUB_API_URL: apiUrl } = settings;
  if (appId === undefined && keyFile === undefined) return undefined;
  if (appId === undefined || keyFile === undefined) {
    throw new StartError("A GitHub App needs both MOS_GITHUB_APP_ID and MOS_GITHUB_APP_KEY_FILE");
  }
  try {
    return { appId, apiUrl, key: createPrivateKey(await readFile(keyFile)) };
  } catch (cause) {
    throw new StartError(`The GitHub App's key "${keyFile}" cannot be used: ${String(cause)}`, { cause });
  }
}
