import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { TestContext } from "node:test";
import { exportJWK, type JWTPayload, SignJWT } from "jose";
import { commits } from "./workflow-event.ts";

interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** A stand-in for GitHub's issuer of identity tokens, and for the runner's address to ask it for one. */
export interface IdentityProvider {
  readonly issuer: string;
  /** Variables of a step whose workflow has `id-token: write`. */
  readonly environment: Readonly<Record<"ACTIONS_ID_TOKEN_REQUEST_URL" | "ACTIONS_ID_TOKEN_REQUEST_TOKEN", string>>;
  /** Claims of the tokens to come, beside the times and the audience. */
  readonly claims: JWTPayload;
  /** Audiences that steps asked for. */
  readonly audiences: readonly string[];
  /** How often the keys were fetched. */
  readonly keyRequests: () => number;
  /** A token that is not asked for by a step. Claims that are undefined are left out. */
  mint(claims?: JWTPayload): Promise<string>;
  /** Signs with a new key from now on; the old one is no longer published. */
  rotateKeys(): void;
}

const lifeSeconds = 300;

/** Starts the stand-in on a free port; it is gone after the test. */
export async function startIdentityProvider(t: TestContext): Promise<IdentityProvider> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const issuer = `http://127.0.0.1:${address.port}`;
  const requestToken = randomUUID();
  const claims: JWTPayload = { ...workflowClaims };
  const audiences: string[] = [];
  let key = newKey();
  let keyRequests = 0;

  function mint(given: JWTPayload = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const times = { iat: now, nbf: now - 5, exp: now + lifeSeconds };
    const all = { iss: issuer, aud: "https://github.com/acme", jti: randomUUID(), ...times, ...claims, ...given };
    const header = { alg: "RS256", kid: key.kid, typ: "JWT" };
    return new SignJWT(all).setProtectedHeader(header).sign(key.privateKey);
  }

  async function answer(url: URL, authorization: string | undefined): Promise<unknown> {
    if (url.pathname === "/.well-known/openid-configuration") return { issuer, jwks_uri: `${issuer}/.well-known/jwks` };
    if (url.pathname === "/.well-known/jwks") {
      keyRequests++;
      return { keys: [{ ...(await exportJWK(key.publicKey)), kid: key.kid, alg: "RS256", use: "sig" }] };
    }
    if (url.pathname !== "/token" || authorization !== `Bearer ${requestToken}`) return undefined;
    const audience = url.searchParams.get("audience") ?? "";
    audiences.push(audience);
    return { value: await mint(audience === "" ? {} : { aud: audience }) };
  }

  server.on("request", (request, response) => {
    const sent = answer(new URL(request.url ?? "/", issuer), request.headers.authorization);
    void sent.then((body) => {
      response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(body ?? {}));
    });
  });
  return {
    issuer,
    environment: {
      ACTIONS_ID_TOKEN_REQUEST_URL: `${issuer}/token?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: requestToken,
    },
    claims,
    audiences,
    keyRequests: () => keyRequests,
    mint,
    rotateKeys() {
      key = newKey();
    },
  };
}

function newKey(): SigningKey {
  return { kid: randomUUID(), ...generateKeyPairSync("rsa", { modulusLength: 2048 }) };
}

const workflowClaims = {
  sub: "repo:acme@9919/models@1296269:pull_request",
  repository: "acme/models",
  repository_id: "1296269",
  repository_owner: "acme",
  repository_owner_id: "9919",
  repository_visibility: "private",
  ref: "refs/pull/7/merge",
  ref_type: "branch",
  ref_protected: "false",
  sha: commits.merge,
  head_ref: "smaller-model",
  base_ref: "main",
  event_name: "pull_request",
  actor: "octocat",
  actor_id: "1",
  workflow: "Compression",
  workflow_ref: "acme/models/.github/workflows/compression.yml@refs/pull/7/merge",
  job_workflow_ref: "acme/models/.github/workflows/compression.yml@refs/pull/7/merge",
  runner_environment: "github-hosted",
  run_id: "30433642",
  run_number: "12",
  run_attempt: "1",
};
