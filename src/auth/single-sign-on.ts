import * as client from "openid-client";
import { ServiceError } from "../contract/errors.ts";
import type { IssuedPerson } from "../records/people/person-access.ts";
import { parseClaims } from "./parse-claims.ts";
import { readBoundedText } from "./identity-verifier.ts";

/** An OpenID Connect provider, and the service as its client. */
export interface SingleSignOnOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Scopes to ask for, separated by spaces. */
  readonly scopes: string;
  /** Claim with the names of a person's groups. */
  readonly groupsClaim: string;
  /** Where people reach the service. */
  readonly publicUrl: string;
}

/** What the browser keeps while a person is at the issuer. */
interface SignInFlow {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface SingleSignOn {
  readonly issuer: string;
  /** Begins a sign-in. @returns where the browser goes, and what it keeps */
  begin(): Promise<{ readonly address: URL; readonly flow: SignInFlow }>;
  /** Ends it with the query that the browser comes back with. @returns who signed in */
  finish(query: string, flow: SignInFlow): Promise<IssuedPerson>;
}

/** Each answer of an issuer: it comes within this time, seconds, and has no more bytes. */
const answerSeconds = 5;
const maxAnswerBytes = 1_048_576;

/**
 * Signs people in by the authorization code flow with PKCE. The issuer's configuration and keys
 * are read again each time, so that those which it replaces count at once.
 * Both functions throw ServiceError unavailable where the issuer does not answer as it has to, and
 * `finish` sign_in_refused for what the issuer does not prove.
 */
export function createSingleSignOn(options: SingleSignOnOptions): SingleSignOn {
  const { issuer, scopes, groupsClaim, publicUrl } = options;
  const redirectUri = new URL("/auth/callback", publicUrl);
  return {
    issuer,
    async begin() {
      const config = await discover(options);
      const verifier = client.randomPKCECodeVerifier();
      const flow = { state: client.randomState(), nonce: client.randomNonce(), verifier };
      const address = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri.href,
        scope: scopes,
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return { address, flow };
    },
    async finish(query, flow) {
      const config = await discover(options);
      // The address is the settings', since proxies can change the request's.
      const address = new URL(redirectUri);
      address.search = query;
      return parseClaims(await redeemCode(config, address, flow), { issuer, groupsClaim });
    },
  };
}

/** @throws ServiceError unavailable */
async function discover({
  issuer,
  clientId,
  clientSecret,
}: SingleSignOnOptions): Promise<client.Configuration> {
  const authentication = client.ClientSecretBasic(clientSecret);
  try {
    const options = discoveryOptions(issuer);
    return await client.discovery(new URL(issuer), clientId, undefined, authentication, options);
  } catch (cause) {
    const message = `The single sign-on "${issuer}" cannot be asked`;
    throw new ServiceError("unavailable", message, { cause });
  }
}

function discoveryOptions(issuer: string): client.DiscoveryRequestOptions {
  // Settings allow such an address only of this machine, with nobody between.
  // oxlint-disable-next-line typescript/no-deprecated
  const insecure = issuer.startsWith("http:") ? [client.allowInsecureRequests] : [];
  return {
    execute: [client.enableNonRepudiationChecks, ...insecure],
    timeout: answerSeconds,
    [client.customFetch]: fetchBounded,
  };
}

/** @throws ServiceError sign_in_refused */
async function redeemCode(
  config: client.Configuration,
  address: URL,
  { state, nonce, verifier }: SignInFlow,
): Promise<Record<string, unknown>> {
  try {
    const tokens = await client.authorizationCodeGrant(config, address, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    if (claims === undefined) throw new Error("The answer has no identity token");
    const userInfo = await readUserInfo(config, tokens.access_token, claims.sub);
    return { ...userInfo, ...claims, ...pickAddress([claims, { ...userInfo }]) };
  } catch (cause) {
    throw new ServiceError("sign_in_refused", "The single sign-on identifies nobody", { cause });
  }
}

/** Most issuers say there what identity tokens leave out. */
async function readUserInfo(config: client.Configuration, accessToken: string, subject: string) {
  const isThere = config.serverMetadata().userinfo_endpoint !== undefined;
  return isThere ? client.fetchUserInfo(config, accessToken, subject) : undefined;
}

/**
 * An address with what the same answer says of it: an issuer may leave one of both out of the
 * identity token, and say it of another address elsewhere.
 */
function pickAddress(answers: readonly Readonly<Record<string, unknown>>[]) {
  const withAddress = answers.filter(({ email }) => email !== undefined);
  const [first = {}] = withAddress;
  const said = withAddress.find(({ email_verified }) => email_verified !== undefined) ?? first;
  return { email: said["email"], email_verified: said["email_verified"] };
}

async function fetchBounded(url: string, options: client.CustomFetchOptions): Promise<Response> {
  const { body, signal, ...others } = options;
  const answer = await fetch(url, { ...others, body: body ?? null, signal: signal ?? null });
  const text = await readBoundedText(answer, maxAnswerBytes);
  const { status, headers } = answer;
  return new Response(text === "" ? null : text, { status, headers });
}
