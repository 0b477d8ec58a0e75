import assert from "node:assert/strict";
import test from "node:test";
import { limits } from "../../src/contract/limits.ts";
import { passkey, passkeyCreation, passkeyRequest } from "../../src/contract/people/passkey.ts";
import { session } from "../../src/contract/people/session.ts";
import { createSoftAuthenticator } from "../auth/soft-authenticator.ts";
import { makeTestApp, problemIn, type TestApp } from "./test-app.ts";
import { ownPage, signInTestPerson } from "./test-sessions.ts";

const here = { origin: "http://localhost", rpId: "localhost" };
type Authenticator = ReturnType<typeof createSoftAuthenticator>;

async function signedIn(app: TestApp) {
  return { token: null, headers: { ...(await signInTestPerson(app)), ...ownPage } };
}

async function beginCreation({ ask }: TestApp, person: Awaited<ReturnType<typeof signedIn>>) {
  return passkeyCreation.parse(await (await ask("POST /v1/passkeys/options", person)).json());
}

async function beginSignIn({ ask }: TestApp): Promise<string> {
  const page = { token: null, headers: ownPage };
  const answer = await ask("POST /v1/sessions/passkey/options", page);
  return passkeyRequest.parse(await answer.json()).challenge;
}

/** Registers a passkey of the administrator. */
async function register(app: TestApp, authenticator: Authenticator) {
  const person = await signedIn(app);
  const { challenge } = await beginCreation(app, person);
  const credential = authenticator.create({ ...here, challenge });
  const body = { name: "laptop", credential };
  const answer = await app.ask("POST /v1/passkeys", { ...person, body });
  assert.equal(answer.status, 201, await answer.clone().text());
  return { person, body, made: passkey.parse(await answer.json()) };
}

function signInWith({ ask }: TestApp, credential: unknown) {
  const page = { token: null, headers: ownPage };
  return ask("POST /v1/sessions/passkey", { ...page, body: { credential } });
}

test("a passkey that a person registers signs the person in", async (t) => {
  const app = await makeTestApp(t);
  const authenticator = createSoftAuthenticator();
  const { person, made } = await register(app, authenticator);
  const answer = await signInWith(
    app,
    authenticator.use({ ...here, challenge: await beginSignIn(app) }),
  );
  assert.equal(answer.status, 201);
  assert.match(answer.headers.get("set-cookie") ?? "", /HttpOnly; SameSite=Strict/);
  assert.equal(session.parse(await answer.json()).method, "passkey");
  const { excludeCredentials } = await beginCreation(app, person);
  assert.equal(excludeCredentials.length, 1);
  const { passkeys } = JSON.parse(await (await app.ask("GET /v1/passkeys", person)).text());
  assert.deepEqual(passkeys, [{ ...made, lastUsedAt: app.now().toISOString() }]);
});

/** What is wrong with a sign-in, though the passkey signs it. */
const refusals: [string, (app: TestApp, challenge: string) => Promise<Record<string, string>>][] = [
  ["at another origin", async () => ({ origin: "http://localhost.evil.example" })],
  ["at another port", async () => ({ origin: "http://localhost:9000" })],
  ["for another domain", async () => ({ rpId: "evil.example" })],
  ["with a made-up challenge", async () => ({ challenge: "A".repeat(75) })],
  [
    "with a challenge of a registration",
    async (app) => ({ challenge: (await beginCreation(app, await signedIn(app))).challenge }),
  ],
  [
    "after its time",
    async (app, challenge) => {
      app.advance(300_000);
      return { challenge };
    },
  ],
];

for (const [name, change] of refusals) {
  test(`a passkey ${name} signs nobody in`, async (t) => {
    const app = await makeTestApp(t);
    const authenticator = createSoftAuthenticator();
    await register(app, authenticator);
    const challenge = await beginSignIn(app);
    const credential = authenticator.use({ ...here, challenge, ...(await change(app, challenge)) });
    assert.equal((await problemIn(await signInWith(app, credential))).code, "sign_in_refused");
  });
}

test("a challenge counts once, and a counter that goes back reveals a copy", async (t) => {
  const app = await makeTestApp(t);
  const authenticator = createSoftAuthenticator();
  authenticator.counter = 5;
  await register(app, authenticator);
  const use = async (counter: number) => {
    authenticator.counter = counter;
    return authenticator.use({ ...here, challenge: await beginSignIn(app) });
  };
  const first = await use(6);
  assert.equal((await signInWith(app, first)).status, 201);
  assert.equal((await signInWith(app, first)).status, 401, "replayed");
  assert.equal((await signInWith(app, await use(6))).status, 401, "copied");
  assert.equal((await signInWith(app, await use(0))).status, 401, "copied");
  assert.equal((await signInWith(app, await use(7))).status, 201);
});

test("an authenticator that does not check who uses it signs nobody in", async (t) => {
  const app = await makeTestApp(t);
  const authenticator = createSoftAuthenticator();
  await register(app, authenticator);
  authenticator.isVerifying = false;
  const credential = authenticator.use({ ...here, challenge: await beginSignIn(app) });
  assert.equal((await problemIn(await signInWith(app, credential))).code, "sign_in_refused");
  const person = await signedIn(app);
  const other = createSoftAuthenticator();
  other.isVerifying = false;
  const { challenge } = await beginCreation(app, person);
  const body = { name: "x", credential: other.create({ ...here, challenge }) };
  const answer = await app.ask("POST /v1/passkeys", { ...person, body });
  assert.equal((await problemIn(answer)).code, "passkey_refused");
});

test("a registration counts once, for the person alone who began it", async (t) => {
  const app = await makeTestApp(t);
  const authenticator = createSoftAuthenticator();
  const { person, body } = await register(app, authenticator);
  const replayed = await app.ask("POST /v1/passkeys", { ...person, body });
  assert.equal((await problemIn(replayed)).code, "passkey_refused");
  const { challenge } = await beginCreation(app, person);
  const again = { name: "copy", credential: authenticator.create({ ...here, challenge }) };
  const twice = await app.ask("POST /v1/passkeys", { ...person, body: again });
  assert.match((await problemIn(twice)).detail, /registered already/);
  const signInChallenge = await beginSignIn(app);
  const other = createSoftAuthenticator();
  const crossed = other.create({ ...here, challenge: signInChallenge });
  const answer = await app.ask("POST /v1/passkeys", {
    ...person,
    body: { name: "x", credential: crossed },
  });
  assert.equal((await problemIn(answer)).code, "passkey_refused");
});

test("a deleted passkey signs nobody in, and a renamed one does", async (t) => {
  const app = await makeTestApp(t);
  const authenticator = createSoftAuthenticator();
  const { person, made } = await register(app, authenticator);
  const path = `/v1/passkeys/${made.id}`;
  const renamed = await app.ask(`PUT ${path}`, { ...person, body: { name: "phone" } });
  assert.equal(passkey.parse(await renamed.json()).name, "phone");
  const use = async () => authenticator.use({ ...here, challenge: await beginSignIn(app) });
  assert.equal((await signInWith(app, await use())).status, 201);
  assert.equal((await app.ask(`DELETE ${path}`, person)).status, 204);
  assert.equal((await app.ask(`DELETE ${path}`, person)).status, 404);
  assert.equal((await signInWith(app, await use())).status, 401);
});

test("pages of other sites can neither begin nor end a sign-in", async (t) => {
  const app = await makeTestApp(t);
  const authenticator = createSoftAuthenticator();
  await register(app, authenticator);
  const credential = authenticator.use({ ...here, challenge: await beginSignIn(app) });
  const headers = { "sec-fetch-site": "cross-site" };
  const foreign = { token: null, headers };
  assert.equal((await app.ask("POST /v1/sessions/passkey/options", foreign)).status, 403);
  const body = { credential };
  assert.equal((await app.ask("POST /v1/sessions/passkey", { ...foreign, body })).status, 403);
});

test("a person has a limited number of passkeys", async (t) => {
  const app = await makeTestApp(t);
  for (let i = 0; i < limits.passkeys; i++) await register(app, createSoftAuthenticator());
  const person = await signedIn(app);
  const { challenge } = await beginCreation(app, person);
  const credential = createSoftAuthenticator().create({ ...here, challenge });
  const answer = await app.ask("POST /v1/passkeys", { ...person, body: { name: "x", credential } });
  assert.match((await problemIn(answer)).detail, /20 passkeys/);
});

test("passkeys need a name with TLS, or this machine", async (t) => {
  const { app } = await makeTestApp(t);
  const has = async (address: string) => {
    const answer = await app.request(`${address}/v1/sessions/methods`);
    return JSON.parse(await answer.text()).passkeys;
  };
  assert.equal(await has("http://localhost:8080"), true);
  for (const address of ["http://127.0.0.1:8080", "http://[::1]", "https://evil.example"]) {
    assert.equal(await has(address), false, address);
  }
});
