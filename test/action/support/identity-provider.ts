import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { TestContext } from "node:test";
import { exportJWK, type JWTPayload, SignJWT } from "jose";
import { listenLocally } from "../../support/listen-locally.ts";
import { commits } from "./workflow-event.ts";

/** A stand-in for GitHub's issuer of identity tokens, and for the runner's address to ask it for one. */
export interface IdentityProvider {
  readonly issuer: string;
  /** Variables of a step whose workflow has `id-token: write`. */
  readonly environment: Readonly<
    Record<"ACTIONS_ID_TOKEN_REQUEST_URL" | "ACTIONS_ID_TOKEN_REQUEST_TOKEN", string>
  >;
  /** Claims of the tokens to come, beside the times and the audience. */
  readonly claims: JWTPayload;
  /** Audiences that steps asked for. */
  readonly audiences: readonly string[];
}

const lifeSeconds = 300;
const keyId = "issuer";

/** Starts the stand-in on a free port; it is gone after the test. */
export async function startIdentityProvider(t: TestContext): Promise<IdentityProvider> {
  const server = createServer();
  const issuer = await listenLocally(t, server);
  const requestToken = randomUUID();
  const claims: JWTPayload = { ...workflowClaims };
  const audiences: string[] = [];
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

  function mint(audience: string): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const times = { iat: now, nbf: now - 5, exp: now + lifeSeconds };
    return new SignJWT({ iss: issuer, aud: audience, jti: randomUUID(), ...times, ...claims })
      .setProtectedHeader({ alg: "RS256", kid: keyId, typ: "JWT" })
      .sign(privateKey);
  }

  async function answer(
    { pathname, searchParams }: URL,
    authorization: string | undefined,
  ): Promise<unknown> {
    if (pathname === "/.well-known/jwks")
      return { keys: [{ ...(await exportJWK(publicKey)), kid: keyId, alg: "RS256", use: "sig" }] };
    if (pathname !== "/token" || authorization !== `Bearer ${requestToken}`) return undefined;
    const audience = searchParams.get("audience") ?? "";
    audiences.push(audience);
    return { value: await mint(audience) };
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
  };
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
