import assert from "node:assert/strict";
import test from "node:test";
import { auditPage } from "../../src/contract/people/audit.ts";
import { job } from "../../src/contract/jobs/job.ts";
import { limits } from "../../src/contract/limits.ts";
import { self } from "../../src/contract/people/session.ts";
import { makeTestApp, problemIn, startJob } from "./test-app.ts";
import { makeTestLink, ownPage, signInTestPerson } from "./test-sessions.ts";

const compress = { model: { source: "https://models.example/m.onnx" }, target: "cpu" };

test("a link signs a person in, who may do what an administrator may", async (t) => {
  const app = await makeTestApp(t);
  const person = await signInTestPerson(app);
  const answer = await app.ask("GET /v1/self", { token: null, headers: person });
  const { name, project, tokenId, actions } = self.parse(await answer.json());
  assert.deepEqual(
    { name, project, tokenId },
    {
      name: "administrator",
      project: "default",
      tokenId: null,
    },
  );
  assert.ok(actions.includes("manageTokens") && actions.includes("startWork"));
});

test("what a person creates names the person", async (t) => {
  const app = await makeTestApp(t);
  const headers = { ...(await signInTestPerson(app)), ...ownPage };
  const answer = await app.ask("POST /v1/compress", { token: null, headers, body: compress });
  assert.deepEqual(job.parse(await answer.json()).createdBy, {
    tokenId: null,
    name: "administrator",
  });
  const { entries } = auditPage.parse(await (await app.ask("GET /v1/audit")).json());
  const mine = entries.map(({ action, tokenName }) => `${action} by ${tokenName}`);
  assert.deepEqual(mine, [
    "startCompression by administrator",
    "signIn by administrator",
    "createSignInLink by test",
  ]);
});

test("a link signs in once, and not after its time", async (t) => {
  const app = await makeTestApp(t);
  const secret = await makeTestLink(app);
  const ask = (body: unknown) =>
    app.ask("POST /v1/sessions", { token: null, headers: ownPage, body });
  assert.equal((await ask({ secret })).status, 201);
  const replayed = await ask({ secret });
  assert.equal((await problemIn(replayed)).code, "sign_in_refused");
  assert.equal(replayed.headers.get("set-cookie"), null);
  const late = await makeTestLink(app);
  app.advance(limits.signInLinkMinutes * 60_000);
  assert.equal((await problemIn(await ask({ secret: late }))).code, "sign_in_refused");
});

test("each sign-in has a cookie of its own, which scripts and other sites do not get", async (t) => {
  const app = await makeTestApp(t);
  const chosen = `mos-session-80=${"a".repeat(43)}`;
  const body = { secret: await makeTestLink(app) };
  const headers = { ...ownPage, cookie: chosen };
  const answer = await app.ask("POST /v1/sessions", { token: null, body, headers });
  const cookie = answer.headers.get("set-cookie") ?? "";
  assert.match(
    cookie,
    /^mos-session-80=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
  );
  assert.ok(!cookie.startsWith(chosen));
  const fixed = await app.ask("GET /v1/self", { token: null, headers: { cookie: chosen } });
  assert.equal(fixed.status, 401);
});

/** What a browser says of a page that sends a request, and whether it may change something. */
const pages: [string, Record<string, string>, boolean][] = [
  ["the service's own page", ownPage, true],
  ["its page in a browser that says no site", { origin: "http://localhost" }, true],
  ["a page of another port", { "sec-fetch-site": "same-site" }, false],
  ["a page of another site", { "sec-fetch-site": "cross-site" }, false],
  [
    "another site that gives the own origin",
    { origin: "http://localhost", "sec-fetch-site": "cross-site" },
    false,
  ],
  ["another origin", { origin: "http://localhost:9000" }, false],
  ["a sandboxed page", { origin: "null" }, false],
  ["a page that says nothing", {}, false],
];

for (const [page, headers, isAllowed] of pages) {
  test(`${page} ${isAllowed ? "can" : "cannot"} change something with a session`, async (t) => {
    const app = await makeTestApp(t);
    const { id } = await startJob(app);
    const person = await signInTestPerson(app);
    const cancel = await app.ask(`POST /v1/jobs/cancel/${id}`, {
      token: null,
      headers: { ...person, ...headers },
    });
    assert.equal(cancel.status, isAllowed ? 200 : 403);
    const body = { secret: await makeTestLink(app) };
    const signIn = await app.ask("POST /v1/sessions", { token: null, body, headers });
    assert.equal(signIn.status, isAllowed ? 201 : 403);
    const read = await app.ask("GET /v1/jobs", { token: null, headers: { ...person, ...headers } });
    assert.equal(read.status, 200);
  });
}

test("a request has a token or a session, not both", async (t) => {
  const app = await makeTestApp(t);
  const headers = await signInTestPerson(app);
  assert.equal((await problemIn(await app.ask("GET /v1/self", { headers }))).code, "unauthorized");
});

test("a session ends after its time", async (t) => {
  const app = await makeTestApp(t);
  const headers = await signInTestPerson(app);
  app.advance(limits.sessionDays * 86_400_000 - 1);
  assert.equal((await app.ask("GET /v1/self", { token: null, headers })).status, 200);
  app.advance(1);
  assert.equal((await app.ask("GET /v1/self", { token: null, headers })).status, 401);
});

test("signing out ends one session, signing out everywhere all of the person", async (t) => {
  const app = await makeTestApp(t);
  const people: Record<string, string>[] = [];
  for (let i = 0; i < 3; i++) people.push({ ...(await signInTestPerson(app)), ...ownPage });
  const [first, second, third] = people;
  const statuses = () =>
    Promise.all(
      people.map(
        async (headers) => (await app.ask("GET /v1/self", { token: null, headers })).status,
      ),
    );
  const out = await app.ask("DELETE /v1/sessions/self", { token: null, headers: first ?? {} });
  assert.match(out.headers.get("set-cookie") ?? "", /^mos-session-80=; .*Max-Age=0/);
  assert.deepEqual(await statuses(), [401, 200, 200]);
  await app.ask("DELETE /v1/sessions", { token: null, headers: second ?? {} });
  assert.deepEqual(await statuses(), [401, 401, 401]);
  assert.equal((await app.ask("GET /v1/self", { token: null, headers: third ?? {} })).status, 401);
});

test("signing out ends the person's streams", async (t) => {
  const app = await makeTestApp(t);
  const headers = await signInTestPerson(app);
  const stream = await app.ask("GET /v1/events", { token: null, headers });
  const read = (async () => {
    for await (const _ of stream.body ?? []);
  })();
  await app.ask("DELETE /v1/sessions", { token: null, headers: { ...headers, ...ownPage } });
  await read;
});
