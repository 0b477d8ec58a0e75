import { createPrivateKey } from "node:crypto";
import { z } from "zod";
import type { GitHubAppOptions } from "../../github-app/open-github-app.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { readYamlFile } from "../../settings/read-targets.ts";
import type { Settings } from "./settings.ts";

/** The GitHub App that the service reports as. */
export const gitHubAppFile = z.strictObject({
  appId: z.int().min(1).transform(String).describe("Number of the App."),
  privateKey: z
    .string()
    .transform((pem, context) => {
      try {
        return createPrivateKey(pem);
      } catch (error) {
        context.addIssue(`must be a private key in the form of PEM: ${String(error)}`);
        return z.NEVER;
      }
    })
    .describe("The App's private key, as GitHub has made its PEM file."),
  webhookSecret: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Secret of the App's webhook, which leads to `/github/webhook`; without it check runs have no buttons.",
    ),
  apiUrl: z
    .url({ protocol: /^https?$/ })
    .default("https://api.github.com")
    .describe("GitHub's REST interface; that of GitHub Enterprise Server ends in `/api/v3`."),
});

/**
 * The service's GitHub App; undefined where the settings name none.
 * @throws StartError
 */
export async function readGitHubAppOptions({
  MOS_GITHUB_APP_FILE: path,
  MOS_PUBLIC_URL: publicUrl,
}: Settings): Promise<GitHubAppOptions | undefined> {
  if (path === undefined) return undefined;
  if (publicUrl === undefined) {
    throw new StartError("A GitHub App needs MOS_PUBLIC_URL, where links in check runs lead");
  }
  const app = await readYamlFile(gitHubAppFile, { title: "GitHub App file", path });
  const { appId, privateKey: key, webhookSecret, apiUrl } = app;
  return { appId, apiUrl, key, publicUrl, webhookSecret };
}
