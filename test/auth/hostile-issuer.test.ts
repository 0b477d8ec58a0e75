import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import test, { type TestContext } from "node:test";
import { SignJWT } from "jose";
import { listenLocally } from "../support/listen-locally.ts";
import { trustPolicy } from "../../src/contract/people/trust-policy.ts";
import { makeTestApp, problemIn } from "../server/test-app.ts";
import { audience, makePair, startLocalIssuer } from "./local-issuer.ts";

const start = Date.parse("2026-01-01T00:00:00Z") / 1000;

async function trustIssuer(t: TestContext, issuer: string, jwksUri?: string) {
  const trust = trustPolicy.parse({
    issuers: [{ issuer, audience, jwksUri }],
    policies: [
      {
        name: "main",
        issuer,
        claims: { repository_owner_id: 45, repository_id: 123, ref: "refs/heads/main" },
        scopes: ["jobs:read"],
      },
    ],
  });
  const service = await makeTestApp(t, { trust });
  const exchange = (token: string) =>
    service.ask("POST /v1/tokens/exchange", { token: null, body: { token } });
  return { service, exchange };
}

/** A token of an issuer that answers like `listener` to who asks for its keys. */
async function startHostileIssuer(t: TestContext, listener: RequestListener) {
  const url = await listenLocally(t, createServer(listener));
  const { privateKey } = await makePair();
  const token = await new SignJWT({
    iss: url,
    aud: audience,
    iat: start,
    exp: start + 300,
    jti: "1",
  })
    .setProtectedHeader({ alg: "RS256", kid: "a" })
    .sign(privateKey);
  return { url, token };
}

test("an issuer whose keys never end makes the exchange unavailable", async (t) => {
  let given = 0;
  const { url, token } = await startHostileIssuer(t, (_request, response) => {
    const write = (): void => {
      given += 65_536;
      if (!response.destroyed) response.write("x".repeat(65_536), write);
    };
    write();
  });
  const { exchange } = await trustIssuer(t, url);
  const problem = await problemIn(await exchange(token));
  assert.equal(problem.code, "unavailable");
  assert.ok(given < 32 << 20, `${given} bytes were taken`);
});

test("an issuer with thousands of keys is not listened to", async (t) => {
  const keys = Array.from({ length: 5000 }, (_, i) => ({ kid: String(i), kty: "RSA" }));
  const { url, token } = await startHostileIssuer(t, (_request, response) =>
    response.end(JSON.stringify({ keys })),
  );
  const { exchange } = await trustIssuer(t, url);
  assert.equal((await problemIn(await exchange(token))).code, "unavailable");
});

test("an issuer that answers drop by drop is waited for a few seconds, and others are answered meanwhile", async (t) => {
  const { url, token } = await startHostileIssuer(t, (_request, response) => {
    const timer = setInterval(() => response.write(" "), 100);
    response.once("close", () => clearInterval(timer));
  });
  const { service, exchange } = await trustIssuer(t, url);
  const waiting = exchange(token);
  assert.equal((await service.ask("GET /healthz", { token: null })).status, 200);
  assert.equal((await problemIn(await waiting)).code, "unavailable");
});

test("a token that was issued more than a minute in the future is refused", async (t) => {
  const issuer = await startLocalIssuer(t);
  const { exchange } = await trustIssuer(t, issuer.url);
  const future = await issuer.sign({ claims: { iat: start + 61, nbf: start } });
  const problem = await problemIn(await exchange(future));
  assert.equal(problem.code, "identity_token_invalid");
  assert.match(problem.detail, /issued in the future/);
  assert.equal((await exchange(await issuer.sign({ claims: { iat: start + 59 } }))).status, 200);
});

test("a token stays spent where the clock is set back after it was deleted", async (t) => {
  const issuer = await startLocalIssuer(t);
  const { service, exchange } = await trustIssuer(t, issuer.url);
  const token = await issuer.sign({ claims: { exp: start + 3000 } });
  assert.equal((await exchange(token)).status, 200);
  service.advance(3_700_000);
  await service.records.identities.purge();
  service.advance(-3_600_000);
  assert.match((await problemIn(await exchange(token))).detail, /exchanged already/);
});

test("a key that was withdrawn is not trusted again where the clock is set back", async (t) => {
  const issuer = await startLocalIssuer(t);
  const { service, exchange } = await trustIssuer(t, issuer.url);
  const claims = { iat: start - 3600, nbf: start - 3600 };
  const [first, second] = [await issuer.sign({ claims }), await issuer.sign({ claims })];
  assert.equal((await exchange(first)).status, 200);
  await issuer.rotate();
  service.advance(-3_600_000);
  assert.match((await problemIn(await exchange(second))).detail, /a key that its issuer has not/);
});

test("a token by a key that came after the last look is taken once the keys may be asked for again", async (t) => {
  const issuer = await startLocalIssuer(t);
  const { service, exchange } = await trustIssuer(t, issuer.url);
  assert.equal((await exchange(await issuer.sign())).status, 200);
  await issuer.rotate();
  const token = await issuer.sign();
  assert.equal((await exchange(token)).status, 401);
  service.advance(31_000);
  assert.equal((await exchange(token)).status, 200);
});

test("keys that are replaced while the issuer is asked for them: the answer counts, then the new ones", async (t) => {
  const issuer = await startLocalIssuer(t);
  const { promise: isReplaced, resolve: answer } = Promise.withResolvers<void>();
  const { promise: isAsked, resolve: asked } = Promise.withResolvers<void>();
  const readKeys = async () => {
    const keys = await (await fetch(`${issuer.url}/.well-known/jwks`)).text();
    asked();
    await isReplaced;
    return keys;
  };
  const server = createServer((_request, response) => {
    void readKeys().then((keys) => response.end(keys));
  });
  const { service, exchange } = await trustIssuer(t, issuer.url, await listenLocally(t, server));
  const earlier = exchange(await issuer.sign());
  await isAsked;
  await issuer.rotate();
  const token = await issuer.sign();
  const later = exchange(token);
  answer();
  assert.deepEqual([(await earlier).status, (await later).status], [200, 401]);
  service.advance(31_000);
  assert.equal((await exchange(token)).status, 200);
});
