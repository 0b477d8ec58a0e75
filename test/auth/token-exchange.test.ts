import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { decodeJwt, exportJWK, SignJWT, UnsecuredJWT } from "jose";
import { auditPage } from "../../src/contract/people/audit.ts";
import { exchangedToken, token as tokenSchema } from "../../src/contract/people/token.ts";
import { trustPolicy } from "../../src/contract/people/trust-policy.ts";
import {
  audience,
  type LocalIssuer,
  makePair,
  pushToMain,
  startLocalIssuer,
} from "./local-issuer.ts";
import { makeTestApp, problemIn, type TestApp } from "../server/test-app.ts";

const secondMs = 1000;
const start = Date.parse("2026-01-01T00:00:00Z") / 1000;
const identity = { repository_owner_id: 45, repository_id: 123 };

async function startExchange(t: TestContext) {
  const issuer = await startLocalIssuer(t);
  const trust = trustPolicy.parse({
    issuers: [{ issuer: issuer.url, audience }],
    policies: [
      {
        name: "main",
        issuer: issuer.url,
        claims: { ...identity, ref: "refs/heads/main", event_name: ["push", "schedule"] },
        scopes: ["jobs:read", "jobs:write", "baselines:write"],
        expiresInSeconds: 600,
      },
      {
        name: "pull requests",
        issuer: issuer.url,
        claims: { ...identity, event_name: "pull_request", ref: "refs/pull/*/merge" },
        scopes: ["jobs:read", "jobs:write"],
      },
    ],
  });
  const service = await makeTestApp(t, { trust });
  const exchange = (token: string) => ask(service, token);
  return { issuer, service, exchange };
}

function ask(service: TestApp, token: string): Promise<Response> {
  return service.ask("POST /v1/tokens/exchange", { token: null, body: { token } });
}

test("a workflow's token is exchanged for a token with the scopes of its policy, which expires", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  const answer = await exchange(await issuer.sign());
  assert.equal(answer.status, 200);
  const { token, scopes, expiresAt } = exchangedToken.parse(await answer.json());
  assert.deepEqual(scopes, ["jobs:read", "jobs:write", "baselines:write"]);
  assert.equal(expiresAt, "2026-01-01T00:10:00.000Z");
  assert.equal((await service.ask("GET /v1/jobs", { token })).status, 200);
  assert.equal((await service.ask("GET /v1/tokens", { token })).status, 403);
  service.advance(600 * secondMs);
  assert.match((await problemIn(await service.ask("GET /v1/jobs", { token }))).detail, /expired/);
});

test("an exchanged token is listed with its policy and who it was given to", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  await exchange(await issuer.sign());
  const { tokens } = JSON.parse(await (await service.ask("GET /v1/tokens")).text());
  const [listed, made] = tokenSchema.array().parse(tokens);
  assert.deepEqual(
    [listed?.policy, listed?.name],
    ["main", "acme/models refs/heads/main run 987.1"],
  );
  assert.equal(made?.policy, null);
  assert.match(service.logged.join("\n"), /An identity token was exchanged .*"run_id":"987"/);
});

test("what an identity says is shown as one visible line", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  const ref = "refs/pull/\u202e7\u200b/merge";
  const claims = { event_name: "pull_request", ref, run_id: "1\n2" };
  assert.equal((await exchange(await issuer.sign({ claims }))).status, 200);
  const { entries } = auditPage.parse(await (await service.ask("GET /v1/audit")).json());
  assert.equal(
    entries[0]?.tokenName,
    "acme/models refs/pull/\u{fffd}7\u{fffd}/merge run 1\u{fffd}2.1",
  );
});

test("an exchange is in the audit of its policy's project", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  await exchange(await issuer.sign());
  const { entries } = auditPage.parse(await (await service.ask("GET /v1/audit")).json());
  const [{ action, subject, tokenId, tokenName } = assert.fail()] = entries;
  assert.deepEqual([action, tokenName], ["exchangeToken", "acme/models refs/heads/main run 987.1"]);
  assert.deepEqual([subject, entries.length], [tokenId, 1]);
});

test("repositories of two issuers with the same number are two", async (t) => {
  const issuers = [await startLocalIssuer(t), await startLocalIssuer(t)];
  const trust = trustPolicy.parse({
    issuers: issuers.map(({ url: issuer }) => ({ issuer, audience })),
    policies: issuers.map(({ url: issuer }) => {
      return { name: issuer, issuer, claims: identity, scopes: ["jobs:read", "jobs:write"] };
    }),
  });
  const service = await makeTestApp(t, { trust });
  const tokens = [];
  for (const issuer of issuers) {
    const { token } = exchangedToken.parse(await (await ask(service, await issuer.sign())).json());
    tokens.push(token);
  }
  const [own, other] = tokens;
  const body = { model: { source: "https://models.example/a.onnx" }, target: "cpu" };
  const started = await service.ask("POST /v1/compress", { token: own ?? null, body });
  const location = `GET ${started.headers.get("location")}`;
  assert.equal((await service.ask(location, { token: own ?? null })).status, 200);
  assert.equal((await service.ask(location, { token: other ?? null })).status, 404);
});

test("the token of a pull request gets the scopes of its own policy", async (t) => {
  const { issuer, exchange } = await startExchange(t);
  const claims = { event_name: "pull_request", ref: "refs/pull/7/merge", sub: "anything at all" };
  const { scopes, expiresAt } = exchangedToken.parse(
    await (await exchange(await issuer.sign({ claims }))).json(),
  );
  assert.deepEqual([scopes, expiresAt], [["jobs:read", "jobs:write"], "2026-01-01T01:00:00.000Z"]);
});

const refusals: readonly [string, Readonly<Record<string, string | undefined>>, RegExp][] = [
  ["another owner", { repository_owner_id: "46" }, /its claim "repository_owner_id" is "46"$/],
  ["another repository", { repository_id: "124" }, /its claim "repository_id" is "124"$/],
  [
    "a repository without an id",
    { repository_id: undefined },
    /its claim "repository_id" is missing$/,
  ],
  ["another branch", { ref: "refs/heads/main2" }, /its claim "ref" is "refs\/heads\/main2"$/],
  [
    "a branch in a folder of a pull request",
    { event_name: "pull_request", ref: "refs/pull/a/b/merge" },
    /"ref"/,
  ],
  [
    "an event that anybody can cause",
    { event_name: "pull_request_target" },
    /its claim "event_name" is/,
  ],
];

for (const [what, claims, reason] of refusals) {
  test(`a token of ${what} is refused, and only its own claim named`, async (t) => {
    const { issuer, exchange } = await startExchange(t);
    const problem = await problemIn(await exchange(await issuer.sign({ claims })));
    assert.equal(problem.code, "identity_token_refused");
    assert.match(problem.detail, reason);
    assert.doesNotMatch(problem.detail, /pull requests|"push"|schedule|\*/);
  });
}

type Forge = (issuer: LocalIssuer) => Promise<string>;

function claiming(claims: Readonly<Record<string, unknown>>): Forge {
  return (issuer) => issuer.sign({ claims });
}

/** Tokens that nobody should believe, and why. */
const forgeries: Readonly<Record<string, readonly [Forge, RegExp]>> = {
  "is not signed": [
    async ({ url }) =>
      new UnsecuredJWT({ ...pushToMain, jti: "a" })
        .setIssuer(url)
        .setAudience(audience)
        .setIssuedAt(start)
        .setExpirationTime(start + 300)
        .encode(),
    /must be signed by RS256/,
  ],
  "is signed with the public key as a secret": [
    async (issuer) =>
      issuer.sign({ header: { alg: "HS256" }, key: Buffer.from(await issuer.publicKey()) }),
    /must be signed by RS256/,
  ],
  "is signed by RS512": [
    async (issuer) =>
      issuer.sign({ header: { alg: "RS512" }, key: (await makePair("RS512")).privateKey }),
    /must be signed by RS256/,
  ],
  "is signed by another key under the issuer's key id": [
    async (issuer) => issuer.sign({ key: (await makePair()).privateKey }),
    /not signed by its issuer/,
  ],
  "brings its own key along": [
    async (issuer) => {
      const pair = await makePair();
      const jwk = await exportJWK(pair.publicKey);
      return new SignJWT(decodeJwt(await issuer.sign()))
        .setProtectedHeader({ alg: "RS256", jwk })
        .sign(pair.privateKey);
    },
    /a key that its issuer has not/,
  ],
  "was changed after it was signed": [
    async (issuer) => {
      const token = await issuer.sign();
      const claims = JSON.stringify({ ...decodeJwt(token), repository_id: "1" });
      return token.replace(/\..*\./, `.${Buffer.from(claims).toString("base64url")}.`);
    },
    /not signed by its issuer/,
  ],
  "names a key that the issuer does not have": [
    (issuer) => issuer.sign({ header: { kid: "other" } }),
    /a key that its issuer has not/,
  ],
  "is for another audience": [
    claiming({ aud: "https://other.example" }),
    /"aud".*"https:\/\/other.example"/,
  ],
  "has no audience": [claiming({ aud: undefined }), /lacks the claim "aud"/],
  "is of another issuer": [
    claiming({ iss: "https://token.actions.githubusercontent.com" }),
    /trusts no tokens/,
  ],
  "is of no issuer": [claiming({ iss: undefined }), /trusts no tokens/],
  "has no name": [claiming({ jti: undefined }), /lacks the claim "jti"/],
  "has an empty name": [claiming({ jti: "" }), /"jti" .* must be a text/],
  "does not expire": [claiming({ exp: undefined }), /lacks the claim "exp"/],
  "expired a minute ago": [claiming({ exp: start - 60 }), /expired at 2025-12-31T23:59:00.000Z/],
  "is valid in more than a minute": [
    claiming({ nbf: start + 61 }),
    /not valid before 2026-01-01T00:01:01.000Z/,
  ],
  "is not a token": [async () => "secret", /not a JSON Web Token/],
  "is an access token of the service": [
    async () => `mos_${"0".repeat(36)}`,
    /not a JSON Web Token/,
  ],
};

for (const [what, [forge, reason]] of Object.entries(forgeries)) {
  test(`a token that ${what} is refused`, async (t) => {
    const { issuer, service, exchange } = await startExchange(t);
    const answer = await exchange(await forge(issuer));
    assert.equal(answer.headers.get("www-authenticate"), 'Bearer error="invalid_token"');
    const problem = await problemIn(answer);
    assert.equal(problem.code, "identity_token_invalid");
    assert.match(problem.detail, reason);
    assert.doesNotMatch(service.logged.join("\n"), /was exchanged/);
  });
}

test("clocks may differ by less than a minute", async (t) => {
  const { issuer, exchange } = await startExchange(t);
  assert.equal((await exchange(await issuer.sign({ claims: { exp: start - 59 } }))).status, 200);
  assert.equal((await exchange(await issuer.sign({ claims: { nbf: start + 60 } }))).status, 200);
});

test("a token is exchanged once, even when it comes twice at the same time", async (t) => {
  const { issuer, exchange } = await startExchange(t);
  const token = await issuer.sign();
  const answers = await Promise.all([exchange(token), exchange(token), exchange(token)]);
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 401, 401],
  );
  assert.match((await problemIn(await exchange(token))).detail, /exchanged already/);
});

test("a token that no policy fits can be exchanged once one does", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  const token = await issuer.sign();
  assert.equal(
    (await exchange(await issuer.sign({ claims: { ref: "refs/heads/x", jti: "same" } }))).status,
    403,
  );
  assert.equal((await exchange(await issuer.sign({ claims: { jti: "same" } }))).status, 200);
  service.advance(359 * secondMs);
  await service.records.identities.purge();
  assert.equal((await exchange(token)).status, 200);
  await service.records.identities.purge();
  assert.equal((await exchange(token)).status, 401);
});

test("keys are kept, and fetched again for a token that names a new one", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  await exchange(await issuer.sign());
  await exchange(await issuer.sign());
  assert.equal(issuer.asked(), 1);
  const old = await issuer.sign();
  await issuer.rotate();
  service.advance(31 * secondMs);
  assert.equal((await exchange(await issuer.sign())).status, 200);
  assert.equal(issuer.asked(), 2);
  assert.match((await problemIn(await exchange(old))).detail, /a key that its issuer has not/);
});

test("a withdrawn key is refused after ten minutes at the latest", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  const sign = () => issuer.sign({ claims: { exp: start + 3600 } });
  const [first, second] = [await sign(), await sign()];
  await exchange(await sign());
  await issuer.rotate();
  assert.equal((await exchange(first)).status, 200);
  service.advance(600 * secondMs);
  assert.equal((await exchange(second)).status, 401);
});

test("tokens with keys that nobody knows do not make the service ask their issuer again and again", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  const forge = (kid: string) => issuer.sign({ header: { kid } });
  for (let round = 1; round <= 2; round++) {
    for (let i = 0; i < 5; i++) assert.equal((await exchange(await forge(`no-${i}`))).status, 401);
    assert.equal(issuer.asked(), round);
    service.advance(31 * secondMs);
  }
});

test("tokens that come at once make the service ask for the keys once", async (t) => {
  const { issuer, exchange } = await startExchange(t);
  const tokens = await Promise.all(Array.from({ length: 8 }, () => issuer.sign()));
  const answers = await Promise.all(tokens.map(exchange));
  assert.ok(answers.every(({ status }) => status === 200));
  assert.equal(issuer.asked(), 1);
});

test("an issuer that does not answer makes the exchange unavailable until it does", async (t) => {
  const { issuer, service, exchange } = await startExchange(t);
  issuer.answering = false;
  const token = await issuer.sign();
  const answer = await exchange(token);
  assert.equal(answer.headers.get("retry-after"), "5");
  assert.equal((await problemIn(answer)).code, "unavailable");
  assert.match(service.logged.join("\n"), /A request failed/);
  issuer.answering = true;
  assert.equal((await exchange(token)).status, 200);
});

test("a service without a trust policy exchanges nothing", async (t) => {
  const issuer = await startLocalIssuer(t);
  const problem = await problemIn(await ask(await makeTestApp(t), await issuer.sign()));
  assert.equal(problem.code, "identity_token_refused");
});

test("a body that is not an identity token is named", async (t) => {
  const { service } = await startExchange(t);
  for (const body of [
    {},
    { token: "" },
    { token: "a".repeat(16_385) },
    { token: "a", scopes: ["admin"] },
  ]) {
    const answer = await service.ask("POST /v1/tokens/exchange", { token: null, body });
    assert.equal((await problemIn(answer)).code, "validation_failed");
  }
});
