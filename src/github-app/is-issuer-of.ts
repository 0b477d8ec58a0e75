import { publicIssuer } from "../contract/people/principal.ts";

/** Whether an issuer gives identity tokens to the workflows of the GitHub that has this API. */
export function isIssuerOf(apiUrl: string, issuer: string): boolean {
  const own = findIssuer(apiUrl);
  // Enterprises may have their names behind the issuer, which then is only theirs.
  return issuer === own || (own === publicIssuer && issuer.startsWith(`${own}/`));
}

/** The issuer of the identity tokens of GitHub's workflows. */
export function findIssuer(apiUrl: string): string {
  const { origin, hostname } = new URL(apiUrl);
  if (hostname === "api.github.com") return publicIssuer;
  const [, enterprise] = /^api\.([^.]+\.ghe\.com)$/.exec(hostname) ?? [];
  return enterprise === undefined
    ? `${origin}/_services/token`
    : `https://token.actions.${enterprise}`;
}
