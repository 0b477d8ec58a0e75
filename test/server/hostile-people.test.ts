import assert from "node:assert/strict";
import test from "node:test";
import { authenticate } from "../../src/auth/authenticate.ts";
import { offerSignIn } from "../../src/auth/sign-in.ts";
import { limits } from "../../src/contract/limits.ts";
import { administratorId } from "../../src/contract/people/person.ts";
import type { Route } from "../../src/contract/routes/route.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { createdToken, type Scope } from "../../src/contract/people/token.ts";
import { mayStillCall } from "../../src/server/handlers/may-still-call.ts";
import { proposal, pushed, tenantToken } from "./tenant-tokens.ts";
import { makeTestApp, problemIn, type TestApp } from "./test-app.ts";
import { setRole, signInIssued, singleSignOn } from "./test-people.ts";
import { makeTestLink, ownPage, signInTestPerson } from "./test-sessions.ts";

type Question = NonNullable<Parameters<TestApp["ask"]>[1]>;

async function createOwnToken({ ask }: TestApp, question: Question, ...scopes: Scope[]) {
  const made = await ask("POST /v1/tokens", { ...question, body: { name: "mine", scopes } });
  return createdToken.parse(await made.json());
}

test("a token with few scopes gets no secret with more by rotating another", async (t) => {
  const app = await makeTestApp(t);
  const { id: personId } = await signInIssued(app);
  await setRole(app, personId, "admin");
  const person = await signInIssued(app);
  const strong = await createOwnToken(app, person, "admin");
  const { token } = await createOwnToken(app, person, "tokens:write");
  const answer = await app.ask(`POST /v1/tokens/${strong.id}/rotate`, { token });
  assert.match((await problemIn(answer)).detail, /at most your own scopes, without "admin"/);
});

test("what an administrator rotates ends with the administrator's membership", async (t) => {
  const app = await makeTestApp(t);
  const developer = await signInIssued(app, { subject: "dev" });
  await setRole(app, developer.id, "developer");
  const foreign = await createOwnToken(app, developer, "jobs:read");
  const nobodys = createdToken.parse(
    await (await app.ask("POST /v1/tokens", { body: { name: "ci", scopes: ["admin"] } })).json(),
  );
  const { id: personId, ...administrator } = await signInIssued(app, { subject: "eve" });
  await setRole(app, personId, "admin");
  const rotate = async (id: string) =>
    createdToken.parse(await (await app.ask(`POST /v1/tokens/${id}/rotate`, administrator)).json());
  const rotated = [await rotate(foreign.id), await rotate(nobodys.id)];
  assert.deepEqual(
    rotated.map(({ person }) => person?.id),
    [personId, personId],
  );
  await app.ask(`DELETE /v1/projects/default/members/${personId}`);
  for (const { token } of rotated) {
    assert.equal((await app.ask("GET /v1/jobs", { token })).status, 401);
  }
});

test("a sign-in link that nobody uses gives its person no role back", async (t) => {
  const app = await makeTestApp(t);
  const headers = { ...(await signInTestPerson(app)), ...ownPage };
  await app.ask(`DELETE /v1/projects/default/members/${administratorId}`);
  await makeTestLink(app);
  assert.equal((await app.ask("GET /v1/audit", { token: null, headers })).status, 403);
});

for (const [who, role, status] of [
  ["somebody without a role", undefined, 201],
  ["a viewer", "viewer", 401],
] as const) {
  test(`the first sign-in's secret is answered with ${status} after ${who} signed in`, async (t) => {
    const app = await makeTestApp(t, { singleSignOn });
    const secret = "s".repeat(43);
    const offer = () => offerSignIn(app.records, secret, app.now());
    const use = () =>
      app.ask("POST /v1/sessions", { token: null, body: { secret }, headers: ownPage });
    const { id } = await signInIssued(app);
    await offer();
    if (role !== undefined) await setRole(app, id, role);
    await signInIssued(app);
    assert.equal((await use()).status, status);
    await offer();
    assert.equal((await use()).status, 401);
  });
}

const monthMs = limits.confirmedDays * 86_400_000;

test("who does not sign in at the issuer for a month loses groups", async (t) => {
  const app = await makeTestApp(t, { singleSignOn });
  await setRole(app, "group:vision", "developer");
  const person = await signInIssued(app, { groups: ["vision"] });
  const { token } = await createOwnToken(app, person, "jobs:read");
  app.advance(monthMs - 1000);
  assert.equal((await app.ask("GET /v1/jobs", { token })).status, 200);
  app.advance(1000);
  assert.equal((await app.ask("GET /v1/jobs", { token })).status, 401);
  await signInIssued(app, { groups: ["vision"] });
  assert.equal((await app.ask("GET /v1/jobs", { token })).status, 200);
});

test("no route takes a session's cookie from another site's page to change something", async (t) => {
  const app = await makeTestApp(t, { singleSignOn });
  const { cookie } = await signInTestPerson(app);
  const changing = Object.values<Route>(routes).filter(({ method, open }) => {
    return !open && method !== "GET" && method !== "HEAD";
  });
  assert.ok(changing.length > 20);
  for (const { method, path } of changing) {
    const headers = { cookie, "sec-fetch-site": "same-site" };
    const call = `${method} /v1${path.replaceAll(/\{\w+\}/g, "x")}`;
    const answer = await app.ask(call, { token: null, headers });
    assert.equal((await problemIn(answer)).code, "cross_site_request", call);
  }
});

for (const workflow of [proposal, pushed]) {
  test(`streams of a workflow go on, of a ${workflow.event}`, async (t) => {
    const app = await makeTestApp(t);
    const { token } = await tenantToken(app, { scopes: ["jobs:read"], workflow });
    const headers = { authorization: `Bearer ${token}` };
    const request = new Request("http://localhost/v1/events", { headers });
    const caller = await authenticate(app, request, "readWork");
    assert.equal(await mayStillCall(app, { caller, request }), true);
    await app.records.tokens.revoke(caller.project, caller.id);
    assert.equal(await mayStillCall(app, { caller, request }), false);
  });
}
