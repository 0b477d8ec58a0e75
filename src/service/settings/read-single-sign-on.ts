import type { SingleSignOnOptions } from "../../auth/single-sign-on.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { parseSecret, readCredentialFile } from "./read-credentials.ts";
import type { Settings } from "./settings.ts";

/**
 * The single sign-on; undefined where the settings name none.
 * @throws StartError
 */
export async function readSingleSignOn(
  settings: Settings,
): Promise<SingleSignOnOptions | undefined> {
  const {
    MOS_OIDC_ISSUER: issuer,
    MOS_OIDC_CLIENT_ID: clientId,
    MOS_OIDC_CLIENT_SECRET_FILE: secretFile,
    MOS_OIDC_SCOPES: scopes,
    MOS_OIDC_GROUPS_CLAIM: groupsClaim,
    MOS_PUBLIC_URL: publicUrl,
  } = settings;
  if (issuer === undefined) return undefined;
  if (clientId === undefined || secretFile === undefined || publicUrl === undefined) {
    const needed = "MOS_OIDC_CLIENT_ID, MOS_OIDC_CLIENT_SECRET_FILE and MOS_PUBLIC_URL";
    throw new StartError(`MOS_OIDC_ISSUER needs ${needed}`);
  }
  const clientSecret = await readCredentialFile("single sign-on's secret", secretFile, parseSecret);
  return { issuer, clientId, clientSecret, scopes, groupsClaim, publicUrl };
}
