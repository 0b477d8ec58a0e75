import { type TrustPolicy, trustPolicy } from "../../contract/people/trust-policy.ts";
import { findIssuer, isIssuerOf } from "../../github-app/github-addresses.ts";
import { StartError } from "../../settings/parse-environment.ts";
import { readYamlFile } from "../../settings/read-targets.ts";

/** @throws StartError */
export async function readTrustPolicy(path: string): Promise<TrustPolicy> {
  return readYamlFile(trustPolicy, { title: "Trust policy", path });
}

/**
 * A GitHub App writes checks for workflows of its own GitHub only: a repository of another one may
 * have the name and the number of one of its own.
 * @throws StartError
 */
export function requireOwnIssuers({ policies }: TrustPolicy, apiUrl: string): void {
  for (const { name, issuer, scopes } of policies) {
    if (!scopes.includes("reports:write") || isIssuerOf(apiUrl, issuer)) continue;
    const app = `the GitHub App writes to ${apiUrl}, whose workflows have "${findIssuer(apiUrl)}"`;
    throw new StartError(
      `Trust policy "${name}" gives "reports:write" to workflows of the issuer "${issuer}", but ${app}`,
    );
  }
}
