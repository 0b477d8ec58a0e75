import { z } from "zod";
import { secureUrl } from "../contract/text/secure-url.ts";
import { text } from "../settings/environment-values.ts";

/** Environment variables of the single sign-on of people. */
export const singleSignOnSettings = {
  MOS_OIDC_ISSUER: secureUrl
    .optional()
    .describe(
      "OpenID Connect provider at which people sign in; without it they do by links and passkeys.",
    ),
  MOS_OIDC_CLIENT_ID: text.optional().describe("The provider's name of the service."),
  MOS_OIDC_CLIENT_SECRET_FILE: text
    .optional()
    .describe("File with the secret that the provider has given the service."),
  MOS_OIDC_SCOPES: z
    .string()
    .regex(/^openid( \S+)*$/, { error: 'must be "openid" and more, separated by spaces' })
    .default("openid profile email")
    .describe("Scopes to ask for; some providers say groups for `groups` alone."),
  MOS_OIDC_GROUPS_CLAIM: text
    .default("groups")
    .describe("Claim with the names of a person's groups, which can be members of projects."),
};
