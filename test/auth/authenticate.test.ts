import assert from "node:assert/strict";
import test from "node:test";
import { generateAccessToken } from "../../src/auth/access-token.ts";
import { createdToken, token } from "../../src/contract/people/token.ts";
import { makeTestApp, problemIn } from "../server/test-app.ts";

const hourMs = 3_600_000;

test("a request without a token is refused with a challenge", async (t) => {
  const { ask } = await makeTestApp(t);
  const answer = await ask("GET /v1/jobs", { token: null });
  assert.equal(answer.headers.get("www-authenticate"), "Bearer");
  assert.equal((await problemIn(answer)).code, "unauthorized");
});

const wrongTokens = {
  "is not the service's": generateAccessToken(),
  "has a wrong checksum": "mos_000000000000000000000000000000000000",
  "is not a token at all": "secret",
};

for (const [what, wrong] of Object.entries(wrongTokens)) {
  test(`a token that ${what} is refused`, async (t) => {
    const { ask } = await makeTestApp(t);
    const answer = await ask("GET /v1/jobs", { token: wrong });
    assert.equal(answer.status, 401);
    assert.equal(answer.headers.get("www-authenticate"), 'Bearer error="invalid_token"');
  });
}

test("another authentication scheme is refused", async (t) => {
  const { ask } = await makeTestApp(t);
  const answer = await ask("GET /v1/jobs", {
    token: null,
    headers: { authorization: "Basic dXNlcjpwYXNz" },
  });
  assert.equal(answer.status, 401);
});

test("a token without the scope is refused, and the scope is named", async (t) => {
  const { ask, tokenFor } = await makeTestApp(t);
  const answer = await ask("GET /v1/audit", { token: await tokenFor("jobs:read", "jobs:write") });
  assert.equal(
    answer.headers.get("www-authenticate"),
    'Bearer error="insufficient_scope", scope="admin"',
  );
  const problem = await problemIn(answer);
  assert.equal(problem.code, "missing_scope");
  assert.match(problem.detail, /"admin"/);
});

test("the scope admin includes every other", async (t) => {
  const { ask, tokenFor } = await makeTestApp(t);
  const admin = await tokenFor("admin");
  for (const call of ["GET /v1/jobs", "GET /v1/targets", "GET /v1/tokens"]) {
    assert.equal((await ask(call, { token: admin })).status, 200, call);
  }
});

test("any valid token may read the OpenAPI document", async (t) => {
  const { ask, tokenFor } = await makeTestApp(t);
  assert.equal(
    (await ask("GET /v1/openapi.json", { token: await tokenFor("models:write") })).status,
    200,
  );
  assert.equal((await ask("GET /v1/openapi.json", { token: null })).status, 401);
});

test("an expired token is refused", async (t) => {
  const { ask, advance } = await makeTestApp(t);
  const body = { name: "short", scopes: ["jobs:read"], expiresInDays: 1 };
  const created = createdToken.parse(await (await ask("POST /v1/tokens", { body })).json());
  advance(24 * hourMs - 1);
  assert.equal((await ask("GET /v1/jobs", { token: created.token })).status, 200);
  advance(1);
  const problem = await problemIn(await ask("GET /v1/jobs", { token: created.token }));
  assert.match(problem.detail, /expired at 2026-01-02T00:00:00.000Z/);
});

test("a revoked token is refused at once", async (t) => {
  const { ask } = await makeTestApp(t);
  const body = { name: "ci", scopes: ["jobs:read"] };
  const created = createdToken.parse(await (await ask("POST /v1/tokens", { body })).json());
  assert.equal((await ask("GET /v1/jobs", { token: created.token })).status, 200);
  assert.equal((await ask(`DELETE /v1/tokens/${created.id}`)).status, 204);
  assert.match(
    (await problemIn(await ask("GET /v1/jobs", { token: created.token }))).detail,
    /revoked/,
  );
});

test("tokens are listed with their last use and without themselves", async (t) => {
  const { ask, tokenFor, advance } = await makeTestApp(t);
  const used = await tokenFor("jobs:read");
  advance(hourMs);
  await ask("GET /v1/jobs", { token: used });
  const text = await (await ask("GET /v1/tokens")).text();
  assert.ok(!text.includes(used));
  const listed = token.array().parse(JSON.parse(text).tokens);
  const found = listed.find(({ prefix }) => used.startsWith(prefix));
  assert.equal(found?.lastUsedAt, "2026-01-01T01:00:00.000Z");
});

test("a token that does not exist cannot be revoked", async (t) => {
  const { ask } = await makeTestApp(t);
  const answer = await ask("DELETE /v1/tokens/token-01hzzzzzzzzzzzzzzzzzzzzzzz");
  assert.equal((await problemIn(answer)).code, "not_found");
});
