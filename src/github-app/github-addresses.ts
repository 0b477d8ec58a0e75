import { publicIssuer } from "../contract/people/principal.ts";

/** Whether an issuer gives identity tokens to the workflows of the GitHub that has this API. */
export function isIssuerOf(apiUrl: string, issuer: string): boolean {
  const own = findIssuer(apiUrl);
  // Enterprises may have their names after the issuer, which then is only theirs.
  return issuer === own || (own === publicIssuer && issuer.startsWith(`${own}/`));
}

/** The issuer of the identity tokens of GitHub's workflows. */
export function findIssuer(apiUrl: string): string {
  const webUrl = findWebUrl(apiUrl);
  const { hostname } = new URL(webUrl);
  if (hostname === "github.com") return publicIssuer;
  const isHosted = hostname.endsWith(".ghe.com");
  return isHosted ? `https://token.actions.${hostname}` : `${webUrl}/_services/token`;
}

/** Where people see the GitHub that has this API, without a path. */
export function findWebUrl(apiUrl: string): string {
  const { origin, hostname } = new URL(apiUrl);
  const [, hosted] = /^api\.(github\.com|[^.]+\.ghe\.com)$/.exec(hostname) ?? [];
  // An enterprise's own server has its API under the address that people open.
  return hosted === undefined ? origin : `https://${hosted}`;
}
