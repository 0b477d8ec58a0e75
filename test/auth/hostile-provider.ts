import { createServer, type ServerResponse } from "node:http";
import type { TestContext } from "node:test";
import { exportJWK, SignJWT } from "jose";
import type { SingleSignOnOptions } from "../../src/auth/single-sign-on.ts";
import { listenLocally } from "../support/listen-locally.ts";
import { makePair } from "./local-issuer.ts";

type KeyPair = Awaited<ReturnType<typeof makePair>>;

/** An issuer that says what a test wants. */
export interface HostileProvider {
  readonly options: SingleSignOnOptions;
  /** Laid over the claims of the next identity token. */
  claims: Record<string, unknown>;
  /** Of the person, beside the identity token; asked for where the configuration says so. */
  userInfo: Record<string, unknown>;
  /** Laid over the next configuration. */
  metadata: Record<string, unknown>;
  /** Signs identity tokens. */
  key: KeyPair;
  /** The key that is given out. */
  publicKey: KeyPair;
  /** Answers instead of all else. */
  respond: ((response: ServerResponse) => void) | undefined;
}

export async function startHostileProvider(
  t: TestContext,
  publicUrl: string,
): Promise<HostileProvider> {
  const key = await makePair();
  const server = createServer((request, response) => {
    if (hostile.respond) return hostile.respond(response);
    const path = request.url ?? "";
    void answer(hostile, path).then((document) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(document));
    });
  });
  const issuer = await listenLocally(t, server);
  const hostile: HostileProvider = {
    options: {
      issuer,
      clientId: "service",
      clientSecret: "secret",
      scopes: "openid",
      groupsClaim: "groups",
      publicUrl,
    },
    claims: {},
    userInfo: {},
    metadata: {},
    key,
    publicKey: key,
    respond: undefined,
  };
  return hostile;
}

async function answer(hostile: HostileProvider, path: string): Promise<unknown> {
  const { issuer, clientId } = hostile.options;
  if (path.startsWith("/.well-known/")) {
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      id_token_signing_alg_values_supported: ["RS256"],
      ...hostile.metadata,
    };
  }
  if (path === "/keys") {
    return { keys: [{ ...(await exportJWK(hostile.publicKey.publicKey)), kid: "key" }] };
  }
  if (path === "/userinfo") return { sub: "ada", ...hostile.userInfo };
  const identity = new SignJWT({ sub: "ada", iss: issuer, aud: clientId, ...hostile.claims });
  const signed = identity.setProtectedHeader({ alg: "RS256", kid: "key" }).setIssuedAt();
  if (hostile.claims["exp"] === undefined) signed.setExpirationTime("5m");
  const id_token = await signed.sign(hostile.key.privateKey);
  return { access_token: "access", token_type: "Bearer", expires_in: 300, id_token };
}
