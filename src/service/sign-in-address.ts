const loopbackHosts = new Set(["127.0.0.1", "[::1]"]);

/**
 * The address of a sign-in link. What follows `#` is in no request, log or referrer. Passkeys need
 * a name, so that this machine is called by it.
 */
export function signInAddress(serviceUrl: string, secret: string): string {
  const url = new URL("/sign-in", serviceUrl);
  if (loopbackHosts.has(url.hostname)) url.hostname = "localhost";
  url.hash = secret;
  return url.href;
}
