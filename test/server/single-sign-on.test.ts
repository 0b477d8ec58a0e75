import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import test from "node:test";
import { self } from "../../src/contract/people/session.ts";
import { type HostileProvider, startHostileProvider } from "../auth/hostile-provider.ts";
import { makePair } from "../auth/local-issuer.ts";
import { startLocalProvider } from "../auth/local-provider.ts";
import { makeTestApp, type TestApp } from "./test-app.ts";
import { ownPage } from "./test-sessions.ts";

const publicUrl = "http://localhost";

function locationIn(answer: Response): URL {
  return new URL(answer.headers.get("location") ?? "", publicUrl);
}

/** Cookies that an answer sets, as a browser sends them. */
function cookiesIn(answer: Response): Record<string, string> {
  const set = answer.headers.getSetCookie().map((cookie) => cookie.split(";", 1)[0] ?? "");
  return Object.fromEntries(set.map((cookie) => cookie.split(/=(.*)/s, 2)));
}

function cookieHeader(cookies: Readonly<Record<string, string>>): string {
  return Object.entries(cookies)
    .map(([name, value]) => `${name}=${value}`)
    .join("; ");
}

async function begin({ ask }: TestApp, returnTo = "/jobs") {
  const path = `/auth/sign-in?return=${encodeURIComponent(returnTo)}`;
  const answer = await ask(`GET ${path}`, { token: null });
  assert.equal(answer.status, 302);
  return { address: locationIn(answer), cookie: cookieHeader(cookiesIn(answer)), answer };
}

/** Fills in the provider's forms. @returns where it leads back */
async function signInAt(address: URL, login: string): Promise<URL> {
  const jar: Record<string, string> = {};
  let [url, form]: [URL, URLSearchParams | undefined] = [address, undefined];
  for (let i = 0; i < 20; i++) {
    const request = { method: form ? "POST" : "GET", body: form ?? null };
    const headers = { cookie: cookieHeader(jar) };
    const answer: Response = await fetch(url, { ...request, headers, redirect: "manual" });
    Object.assign(jar, cookiesIn(answer));
    const location = answer.headers.get("location");
    const html = await answer.text();
    if (location !== null) {
      [url, form] = [new URL(location, url), undefined];
      if (url.origin === publicUrl) return url;
      continue;
    }
    const [, action = "", prompt = ""] =
      /action="([^"]+)"[\s\S]*?name="prompt" value="(\w+)"/.exec(html) ?? [];
    url = new URL(action, url);
    form = new URLSearchParams({ prompt, login, password: "any" });
  }
  throw new Error("The provider never leads back");
}

async function come({ ask }: TestApp, back: URL, cookie: string) {
  return ask(`GET ${back.pathname}${back.search}`, { token: null, headers: { cookie } });
}

/** The problem with which the sign-in page opens. */
function problemOf(answer: Response): string | null {
  assert.equal(answer.status, 302);
  assert.equal(answer.headers.get("set-cookie")?.includes("mos-session"), false);
  const location = locationIn(answer);
  assert.equal(location.pathname, "/sign-in");
  return location.searchParams.get("problem");
}

test("a real provider signs people in, whose groups have their roles", async (t) => {
  const singleSignOn = await startLocalProvider(t, { publicUrl, groups: { ada: ["vision"] } });
  const app = await makeTestApp(t, { singleSignOn });
  const member = { body: { role: "developer" } };
  await app.ask("PUT /v1/projects/default/members/group:vision", member);
  const { address, cookie } = await begin(app, "/batches?status=Failed");
  assert.match(address.search, /code_challenge_method=S256/);
  const back = await signInAt(address, "ada");
  const answer = await come(app, back, cookie);
  assert.equal(locationIn(answer).href, `${publicUrl}/batches?status=Failed`);
  const cookies = cookiesIn(answer);
  assert.match(
    answer.headers.getSetCookie()[1] ?? "",
    /^mos-session-80=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
  );
  const headers = { cookie: cookieHeader(cookies), ...ownPage };
  const seen = self.parse(await (await app.ask("GET /v1/self", { token: null, headers })).json());
  assert.deepEqual([seen.name, seen.role], ["ada <b>Lovelace</b>", "developer"]);
  assert.equal(problemOf(await come(app, back, cookie)), "refused", "a code counts once");
});

test("a sign-in ends only in the browser in which it began, and in time", async (t) => {
  const provider = await startHostileProvider(t, publicUrl);
  const app = await makeTestApp(t, { singleSignOn: provider.options });
  const mine = await begin(app);
  const back = backFrom(provider, mine.address);
  const others = await begin(app);
  assert.equal(problemOf(await come(app, back, "")), "expired");
  assert.equal(problemOf(await come(app, back, others.cookie)), "refused");
  assert.equal(problemOf(await come(app, back, mine.cookie.replace("=", "=x"))), "expired");
  assert.match(
    mine.answer.headers.get("set-cookie") ?? "",
    /^mos-sign-in-80=\S+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
  );
  app.advance(600_000);
  assert.equal(problemOf(await come(app, back, mine.cookie)), "expired");
});

/** Where the issuer would lead, with the sign-in's nonce in its identity token. */
function backFrom(provider: HostileProvider, address: URL): URL {
  provider.claims = { nonce: address.searchParams.get("nonce"), ...provider.claims };
  const back = new URL("/auth/callback?code=abc", publicUrl);
  back.searchParams.set("state", address.searchParams.get("state") ?? "");
  return back;
}

const other = await makePair();
const forgeries: [string, (provider: HostileProvider) => unknown][] = [
  ["another nonce", (provider) => (provider.claims = { nonce: "another" })],
  ["another audience", (provider) => (provider.claims = { aud: "another" })],
  ["another issuer", (provider) => (provider.claims = { iss: "https://other.example" })],
  ["a time that is over", (provider) => (provider.claims = { exp: 1 })],
  ["a foreign key", (provider) => (provider.key = other)],
  ["no subject", (provider) => (provider.claims = { sub: undefined })],
  ["a subject that is too long", (provider) => (provider.claims = { sub: "a".repeat(256) })],
];

for (const [name, forge] of forgeries) {
  test(`an identity token with ${name} signs nobody in`, async (t) => {
    const provider = await startHostileProvider(t, publicUrl);
    const app = await makeTestApp(t, { singleSignOn: provider.options });
    const { address, cookie } = await begin(app);
    forge(provider);
    const back = backFrom(provider, address);
    assert.equal(problemOf(await come(app, back, cookie)), "refused");
  });
}

test("a key that the issuer has replaced meanwhile counts, and the one before not", async (t) => {
  const provider = await startHostileProvider(t, publicUrl);
  const app = await makeTestApp(t, { singleSignOn: provider.options });
  const signIn = async () => {
    const { address, cookie } = await begin(app);
    provider.claims = {};
    return come(app, backFrom(provider, address), cookie);
  };
  assert.equal(locationIn(await signIn()).pathname, "/jobs");
  provider.publicKey = other;
  assert.equal(problemOf(await signIn()), "refused");
  provider.key = other;
  assert.equal(locationIn(await signIn()).pathname, "/jobs");
});

const emailAnswers: [
  string,
  { claims: Record<string, unknown>; userInfo: Record<string, unknown>; email: string | null },
][] = [
  [
    "another address is confirmed by the identity token",
    {
      claims: { email_verified: true },
      userInfo: { email: "eve@example.com", email_verified: false },
      email: null,
    },
  ],
  [
    "the identity token does not say whether its address is confirmed",
    {
      claims: { email: "eve@example.com" },
      userInfo: { email: "eve@example.com", email_verified: false },
      email: null,
    },
  ],
  [
    "the identity token has another address, which is confirmed",
    {
      claims: { email: "ada@example.com", email_verified: true },
      userInfo: { email: "eve@example.com", email_verified: false },
      email: "ada@example.com",
    },
  ],
  [
    "the identity token has none",
    {
      claims: { email_verified: false },
      userInfo: { email: "ada@example.com", email_verified: true },
      email: "ada@example.com",
    },
  ],
];

for (const [name, { claims, userInfo, email }] of emailAnswers) {
  test(`an address counts by what the same answer says of it, where ${name}`, async (t) => {
    const provider = await startHostileProvider(t, publicUrl);
    const app = await makeTestApp(t, { singleSignOn: provider.options });
    provider.metadata = { userinfo_endpoint: `${provider.options.issuer}/userinfo` };
    const { address, cookie } = await begin(app);
    provider.userInfo = userInfo;
    const back = backFrom(provider, address);
    provider.claims = { ...provider.claims, ...claims };
    assert.equal(locationIn(await come(app, back, cookie)).pathname, "/jobs");
    const found = await app.records.members.findPeople("ada@example.com");
    const others = await app.records.members.findPeople("eve@example.com");
    assert.deepEqual([found.length, others.length], email === null ? [0, 0] : [1, 0]);
  });
}

test("an answer of another issuer is refused (mix-up)", async (t) => {
  const provider = await startHostileProvider(t, publicUrl);
  const app = await makeTestApp(t, { singleSignOn: provider.options });
  provider.metadata = { authorization_response_iss_parameter_supported: true };
  const { address, cookie } = await begin(app);
  const back = backFrom(provider, address);
  back.searchParams.set("iss", "https://other.example");
  assert.equal(problemOf(await come(app, back, cookie)), "refused");
  back.searchParams.set("iss", provider.options.issuer);
  assert.equal(locationIn(await come(app, back, cookie)).pathname, "/jobs");
});

const outages: [string, (provider: HostileProvider) => unknown][] = [
  ["has a configuration of two megabytes", (provider) => (provider.respond = sendMuch)],
  ["says that it is another", (provider) => (provider.metadata = { issuer: "https://b.example" })],
  ["fails", (provider) => (provider.respond = (response) => response.writeHead(500).end())],
  ["leads elsewhere", (provider) => (provider.respond = redirectElsewhere)],
  ["cuts connections", (provider) => (provider.respond = (response) => response.destroy())],
  ["never answers", (provider) => (provider.respond = () => undefined)],
];

function sendMuch(response: ServerResponse): void {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ padding: "a".repeat(2_000_000) }));
}

function redirectElsewhere(response: ServerResponse): void {
  response.writeHead(302, { location: "http://169.254.169.254/" }).end();
}

for (const [name, fail] of outages) {
  test(`an issuer that ${name} is said to be out of reach`, async (t) => {
    const provider = await startHostileProvider(t, publicUrl);
    const app = await makeTestApp(t, { singleSignOn: provider.options });
    fail(provider);
    const answer = await app.ask("GET /auth/sign-in", { token: null });
    assert.equal(problemOf(answer), "unavailable");
  });
}

const addresses = [
  "https://evil.example/",
  "//evil.example",
  "/\\evil.example",
  "/..//evil.example",
  "\thttps://evil.example",
  "javascript:alert(1)",
  "http://localhost:9000/",
  "http://localhost@evil.example/",
  "blob:http://localhost/x",
  `/${"a".repeat(2001)}`,
];

test("a sign-in leads only to the service's own pages", async (t) => {
  const provider = await startHostileProvider(t, publicUrl);
  const app = await makeTestApp(t, { singleSignOn: provider.options });
  for (const given of addresses) {
    const { address, cookie } = await begin(app, given);
    provider.claims = {};
    const answer = await come(app, backFrom(provider, address), cookie);
    const location = answer.headers.get("location") ?? "";
    assert.ok(location.startsWith(`${publicUrl}/`) && location.length < 100, given);
  }
});

test("sign-ins of one address are limited", async (t) => {
  const provider = await startHostileProvider(t, publicUrl);
  const app = await makeTestApp(t, { singleSignOn: provider.options, exchangesPerMinute: 1 });
  await begin(app);
  assert.equal(problemOf(await app.ask("GET /auth/sign-in", { token: null })), "busy");
});
