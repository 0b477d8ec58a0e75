import { z } from "zod";
import type { SingleSignOnOptions } from "../../auth/single-sign-on.ts";
import { secureUrl } from "../../contract/text/secure-url.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { readYamlFile } from "../../settings/read-targets.ts";
import type { Settings } from "./settings.ts";

/** The OpenID Connect provider at which people sign in. */
export const singleSignOnFile = z.strictObject({
  issuer: secureUrl.describe("Address of the provider."),
  clientId: z.string().min(1).describe("The provider's name of the service."),
  clientSecret: z.string().min(1).describe("Secret that the provider has given the service."),
  scopes: z
    .string()
    .regex(/^openid( \S+)*$/, { error: 'must be "openid" and more, separated by spaces' })
    .default("openid profile email")
    .describe("Scopes to ask for; some providers give groups only for `groups`."),
  groupsClaim: z
    .string()
    .min(1)
    .default("groups")
    .describe("Claim with the names of a person's groups, which can be members of projects."),
});

/**
 * The single sign-on; undefined where the settings name none.
 * @throws StartError
 */
export async function readSingleSignOn({
  MOS_OIDC_FILE: path,
  MOS_PUBLIC_URL: publicUrl,
}: Settings): Promise<SingleSignOnOptions | undefined> {
  if (path === undefined) return undefined;
  if (publicUrl === undefined) {
    throw new StartError("MOS_OIDC_FILE needs MOS_PUBLIC_URL, where people come back to");
  }
  const provider = await readYamlFile(singleSignOnFile, { title: "Single sign-on file", path });
  return { ...provider, publicUrl };
}
